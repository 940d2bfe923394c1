import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { describe, expect, it, onTestFinished } from "vitest";

const MAIN = fileURLToPath(new URL("../dist/main.js", import.meta.url));
const doctor = (args: string[]) =>
  execa(process.execPath, [MAIN, "doctor", ...args], { reject: false, env: { http_proxy: "", all_proxy: "" } });

function temporaryDir(): string {
  const dir = mkdtempSync(join(tmpdir(), "tito-doctor-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

describe("tito doctor", () => {
  it("ends with 0 where nothing will fail, with 1 when warnings count, and leaves nothing behind", async () => {
    const dir = temporaryDir();
    const plain = await doctor(["--out", dir]);
    expect(plain).toMatchObject({ exitCode: 0 });
    expect(plain.stdout).toContain("layer_separate_user");
    expect(plain.stdout).toContain("nothing will fail");
    expect(await doctor(["--out", dir, "--strict"])).toMatchObject({ exitCode: 1 });
    expect(readdirSync(dir)).toEqual([]);
  });

  it("ends with 2 where something will fail, and says what to do; as JSON too", async () => {
    const file = join(temporaryDir(), "file");
    writeFileSync(file, "");
    const found = await doctor(["--out", join(file, "out"), "--upstream", "http://127.0.0.1:9", "--json"]);
    expect(found).toMatchObject({ exitCode: 2 });
    const { exit_code, findings } = JSON.parse(found.stdout) as {
      exit_code: number;
      findings: { check: string; level: string }[];
    };
    expect(exit_code).toBe(2);
    expect(findings.filter((one) => one.level === "failure").map((one) => one.check)).toEqual(["directory", "engine"]);
  });

  it("refuses a wrong call with 64", async () => {
    expect(await doctor(["--upstream", "nowhere"])).toMatchObject({ exitCode: 64 });
    expect(await doctor(["--out"])).toMatchObject({ exitCode: 64 });
  });
});
