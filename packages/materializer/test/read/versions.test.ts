import { describe, expect, it } from "vitest";
import { versionNumbers } from "../../src/read/versions.js";

describe("the number of a weight version", () => {
  it.each<[string, number, number]>([
    ["120", 120, 120],
    ["step-120", 120, 120],
    ["policy/v007", 7, 7],
    ["global_step_20", 20, 20],
    ["run-deadbeef/step_12", 12, 12],
    ["125..120", 120, 125],
    ["step-3..step-5", 3, 5],
  ])("%s", (name, oldest, newest) => {
    expect(versionNumbers(name)).toEqual({ oldest, newest });
  });

  it.each(["default", "", "..", "default..125", "step-120-lora", "7 "])("none in %j", (name) => {
    expect(versionNumbers(name)).toBeNull();
  });

  it.each(["9f3c2d1", "sha256:0a1b2c3d4e5f6071", "main-deadbeef12", "ABCDEF01", "120..9f3c2d1", "20261201123456789"])(
    "none in %s, whose last digits say nothing (O.173)",
    (name) => {
      expect(versionNumbers(name)).toBeNull();
    },
  );
});
