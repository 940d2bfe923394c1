/** Two records that contradict each other: how that is reported while they are compared. */
import type { RecordPlace } from "../read/trajectory-log.js";

type WitnessCode = "prompt_mismatch" | "record_mismatch" | "manifest_mismatch";

export interface Contradiction {
  code: WitnessCode;
  place: Pick<RecordPlace, "file" | "offset" | "seq">;
  message: string;
  /** True where records that are lost can explain it: a disk that lost them lost a reference with them. */
  lossExplains: boolean;
}

export type Report = (
  code: WitnessCode,
  place: Contradiction["place"],
  message: string,
  more?: { lossExplains: boolean },
) => void;

export const LOST = { lossExplains: true };
