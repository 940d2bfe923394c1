import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// Unit tests resolve workspace packages to their sources, so that they never run against a stale build.
const packagesDir = fileURLToPath(new URL("packages/", import.meta.url));
const alias = readdirSync(packagesDir).flatMap((name) => [
  { find: new RegExp(`^@tito/${name}$`), replacement: `${packagesDir}${name}/src/index.ts` },
  { find: new RegExp(`^@tito/${name}/(.+)$`), replacement: `${packagesDir}${name}/src/$1.ts` },
]);

const slow = ["**/*.e2e.test.ts", "**/*.crash.test.ts", "**/node_modules/**", "**/dist/**"];

// End-to-end tests that compare times or memory within one run: nothing else runs beside them.
const measured = [
  "scripts/test/sidecar-program.e2e.test.ts",
  "scripts/test/release.e2e.test.ts",
  "packages/sidecar/test/gateway-load.e2e.test.ts",
  "packages/sidecar/test/slow-reader.e2e.test.ts",
  "packages/sidecar/test/slow-sender.e2e.test.ts",
];

export default defineConfig({
  resolve: { alias },
  test: {
    // Also on two cores: by itself vitest leaves one of them idle.
    maxWorkers: availableParallelism(),
    setupFiles: [fileURLToPath(new URL("scripts/test/fixed-seed.ts", import.meta.url))],
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["packages/*/test/**/*.test.ts", "scripts/test/**/*.test.ts"],
          exclude: slow,
          testTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: "e2e",
          include: ["packages/*/test/**/*.e2e.test.ts", "scripts/test/**/*.e2e.test.ts"],
          exclude: [...measured, "**/node_modules/**", "**/dist/**"],
          testTimeout: 180_000,
          hookTimeout: 120_000,
        },
      },
      {
        extends: true,
        test: {
          name: "measured",
          include: measured,
          testTimeout: 180_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
      {
        extends: true,
        test: {
          name: "crash",
          include: ["packages/*/test/**/*.crash.test.ts"],
          exclude: ["**/node_modules/**", "**/dist/**"],
          testTimeout: 300_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
