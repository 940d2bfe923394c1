import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeScratchDir } from "../../src/process/scratch-dir.js";
import { temporaryDir } from "../harness.js";

const PURPOSE = { prefix: "tito-x-", purpose: "the harness's home", instead: "--harness-home DIR", owner: null };

describe("a directory for the time of one run (O.112)", () => {
  const places = () => {
    const root = temporaryDir();
    const [absent, file, good, out] = ["absent", "file", "good", "out"].map((name) => join(root, name)) as [
      string,
      string,
      string,
      string,
    ];
    writeFileSync(file, "");
    mkdirSync(good);
    mkdirSync(join(out, "inner"), { recursive: true });
    return { absent, file, good, out };
  };

  it("is made in the first place that allows it, says which when it is not the first, and goes with what is in it", () => {
    const { absent, file, good, out } = places();
    const said: string[] = [];
    const warn = (message: string): void => void said.push(message);
    const made = makeScratchDir({ ...PURPOSE, out, warn }, [absent, file, good]);
    expect(made.path.startsWith(join(good, "tito-x-"))).toBe(true);
    expect(statSync(made.path).mode & 0o777).toBe(0o700);
    expect(said).toEqual([
      `can not write to ${absent} (ENOENT): the harness's home is ${made.path}; TMPDIR or --harness-home DIR names another place`,
    ]);
    mkdirSync(join(made.path, "a/b"), { recursive: true });
    writeFileSync(join(made.path, "a/b/c"), "");
    made.remove();
    made.remove();
    expect(readdirSync(good)).toEqual([]);

    makeScratchDir({ ...PURPOSE, out, warn }, [good, absent]).remove();
    expect(said).toHaveLength(1);
  });

  it("never falls back to the record's directory, and names every place that was tried when there is none", () => {
    const { absent, file, out } = places();
    const make = () =>
      makeScratchDir({ ...PURPOSE, out, warn: () => undefined }, [absent, out, join(out, "inner"), file]);
    expect(make).toThrow(
      expect.objectContaining({
        code: "cannot_write",
        message: `the harness's home can not be made in any of ${absent} (ENOENT), ${file} (ENOTDIR)`,
        hint: "set TMPDIR to a directory that can be written to, or give --harness-home DIR",
      }),
    );
    expect(readdirSync(out)).toEqual(["inner"]);
  });
});
