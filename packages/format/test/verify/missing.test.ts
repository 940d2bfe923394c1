import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import type { AnchoredHead } from "../../src/record/anchors.js";
import { verifyTrajectory } from "../../src/verify/verify.js";
import { Conversation, openWriter, tempDir } from "../support/turns.js";

/** A trajectory `t1` of one turn, and what was anchored of it. */
async function recorded(seal: boolean): Promise<{ dir: string; anchors: AnchoredHead[] }> {
  const out = tempDir();
  const anchors: AnchoredHead[] = [];
  const writer = await openWriter(out, { onAnchor: (head: AnchoredHead) => void anchors.push(head) });
  await writer.commitTurn({ open: { parent: null }, turn: new Conversation("a").next() });
  if (seal) await writer.seal({ reason: "test" });
  else writer.abandon();
  return { dir: path.join(out, "t1"), anchors };
}

function removeRecords(dir: string): void {
  for (const name of fs.readdirSync(dir, { recursive: true, encoding: "utf8" })) {
    if (name.endsWith(".seg") || name === "manifest.json") fs.rmSync(path.join(dir, name));
  }
}

describe("O.131 a trajectory of which no record is left", () => {
  it.each([true, false])("is missing, by its anchors and by its writer's traces (sealed: %s)", async (sealed) => {
    const { dir, anchors } = await recorded(sealed);
    removeRecords(dir);
    const verdict = verifyTrajectory(dir, { anchors });
    expect(verdict).toMatchObject({ status: "missing", trajectory_id: "t1", counts: { files: 0, turns: 0 } });
    expect(verdict.findings).toMatchObject([{ code: "trajectory_missing", severity: "incomplete" }]);
    expect(verdict.head).toEqual(anchors.at(-1));
    expect(verifyTrajectory(dir)).toMatchObject({ status: "missing", head: null });
  });

  it("is missing where the directory itself is gone or empty and anchors name it, also under another name", async () => {
    const { dir, anchors } = await recorded(true);
    fs.rmSync(dir, { recursive: true });
    expect(verifyTrajectory(dir, { anchors }).status).toBe("missing");
    fs.mkdirSync(dir);
    expect(verifyTrajectory(dir, { anchors }).status).toBe("missing");
    const elsewhere = tempDir();
    expect(verifyTrajectory(elsewhere, { anchors })).toMatchObject({ status: "missing", trajectory_id: "t1" });
  });

  it("is a wrong path where nothing says that a trajectory was ever there", () => {
    const empty = tempDir();
    for (const dir of [empty, path.join(empty, "nowhere")])
      for (const anchors of [undefined, []])
        expect(() => verifyTrajectory(dir, anchors === undefined ? {} : { anchors })).toThrowError(/no trajectory/);
  });
});
