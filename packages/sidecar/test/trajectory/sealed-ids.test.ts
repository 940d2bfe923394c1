import { appendFileSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SEALED_IDS_FILE, SealedIds } from "../../src/trajectory/sealed-ids.js";
import { temporaryDir } from "../harness.js";

const setup = () => {
  const out = temporaryDir();
  return { out, file: join(out, SEALED_IDS_FILE) };
};

describe("ids that were sealed (O.116)", () => {
  it("stay closed for the next process, and are written once each, readable by their owner only", async () => {
    const { out, file } = setup();
    const first = SealedIds.read(out);
    await Promise.all(["a", "b", "a"].map((id) => first.close(id)));
    await first.close("b");
    const second = SealedIds.read(out);
    await second.close("c");
    for (const id of ["a", "b", "c"]) expect(SealedIds.read(out).has(id)).toBe(true);
    expect(SealedIds.read(out).has("d")).toBe(false);
    expect(
      readFileSync(file, "utf8")
        .split("\n")
        .map((line) => line.split(" ")[0]),
    ).toEqual(["a", "b", "c", ""]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it("of which the last was being written when the process died are read up to there, and go on", async () => {
    for (const torn of ["z", "z 0123", "\0\0\0"]) {
      const { out, file } = setup();
      await SealedIds.read(out).close("a");
      appendFileSync(file, torn);
      const next = SealedIds.read(out);
      expect([next.has("a"), next.has("z")]).toEqual([true, false]);
      await next.close("b");
      const last = SealedIds.read(out);
      expect([last.has("a"), last.has("b")]).toEqual([true, true]);
    }
  });

  it("in a damaged file start nothing: the line is named, and what to do", async () => {
    const { out, file } = setup();
    for (const id of ["a", "b", "c"]) await SealedIds.read(out).close(id);
    const lines = readFileSync(file, "utf8").split("\n");
    for (const wrong of ["", "b", `x${lines[1]!.slice(1)}`, `${lines[1]} `, "../b 00000000"]) {
      writeFileSync(file, [lines[0], wrong, lines[2], ""].join("\n"));
      expect(() => SealedIds.read(out)).toThrow(
        expect.objectContaining({
          code: "damaged",
          message: expect.stringContaining(`${file}: line 2 `),
          hint: expect.stringContaining("take that line out"),
        }),
      );
    }
  });

  it("are not looked for behind a link, in a directory or in a file without end", () => {
    for (const plant of [
      (file: string) => symlinkSync("/dev/zero", file),
      (file: string) => mkdirSync(file),
      (file: string) => writeFileSync(file, "x".repeat(1000)),
    ]) {
      const { out, file } = setup();
      plant(file);
      expect(() => SealedIds.read(out, 3)).toThrow(
        expect.objectContaining({ code: "io", message: expect.stringContaining(file) }),
      );
    }
  });

  it("are only so many: then no more trajectories are begun", async () => {
    const { out } = setup();
    const ids = SealedIds.read(out, 2);
    ids.checkRoom();
    await ids.close("a");
    ids.checkRoom();
    await ids.close("b");
    expect(() => ids.checkRoom()).toThrow(
      expect.objectContaining({ code: "format_limit", hint: expect.stringContaining("--out") }),
    );
    expect(() => SealedIds.read(out, 2).checkRoom()).toThrow(expect.objectContaining({ code: "format_limit" }));
  });

  it("stay closed in this process also when the disk does not take them", async () => {
    const out = join(temporaryDir(), "file");
    writeFileSync(out, "");
    const ids = SealedIds.read(out);
    await expect(ids.close("a")).rejects.toThrow();
    expect(ids.has("a")).toBe(true);
  });
});
