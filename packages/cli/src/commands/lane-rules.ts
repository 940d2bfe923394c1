import { readFileSync } from "node:fs";
import { TitoError } from "@tito/format";
import type { LaneRules } from "@tito/materializer";

/** Rule files of `--lane-rules`, in order; undefined when there is none. @throws TitoError `not_found`, `usage`. */
export async function readLaneRules(files: readonly string[] | undefined): Promise<LaneRules[] | undefined> {
  if (files === undefined) return undefined;
  const { parseLaneRules } = await import("@tito/materializer");
  return files.map((file) => parseLaneRules(readText(file), file));
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? String(cause);
    throw new TitoError("not_found", `cannot read the lane rules ${file}: ${code}`, { cause });
  }
}
