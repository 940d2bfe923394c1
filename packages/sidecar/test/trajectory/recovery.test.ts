import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { nodeDisk } from "@tito/format";
import { Conversation, FaultDisk, openWriter } from "@tito/testkit";
import { expect, it } from "vitest";
import { readConfig } from "../../src/config/config.js";
import { Trajectory } from "../../src/trajectory/trajectory.js";
import { temporaryDir } from "../temporary.js";

it("O.22 a third boot remembers every turn, also those behind one whose commit frame was never written", async () => {
  const out = temporaryDir();
  const main = new Conversation("main");
  const disk = new FaultDisk();
  const first = await openWriter(out, { disk });
  await first.commitTurn({ open: { parent: null }, turn: main.next() });
  disk.setFault({ error: "EIO", at: 2, forever: true, calls: ["writev", "open"] });
  await first.commitTurn({ segment: 1, turn: main.next() }).catch(() => undefined);
  const rest = disk.kill();
  writeFileSync(join(out, "t1/writer-0001.lock"), "999999999 1\n");
  const second = await openWriter(out, { disk: rest });
  const parent = { segment: 1, tokens: main.line.length };
  await second.commitTurn({ open: { parent, continues: { segment: 1, why: "recovered" } }, turn: main.next() });
  second.abandon();
  const warnings: string[] = [];
  const third = await Trajectory.open({
    config: readConfig({ upstream: "http://127.0.0.1:1", model: "m", out, trajectoryId: "t1", secrets: {} }),
    model: null,
    trajectoryId: "t1",
    apiKey: "key",
    writerVersion: "test",
    hmacKey: null,
    disk: nodeDisk,
    onAnchor: () => undefined,
    log: (level, event) => void (level === "warn" && warnings.push(event)),
  });
  expect(warnings).toEqual([]);
  expect([...third.continuity.turns.keys()]).toEqual(["main-1", "main-2", "main-3"]);
  third.writer.abandon();
});
