/** What is held of a boot and of its commits until all files were walked. */
import type { RecordPlace } from "../read/trajectory-log.js";
import type { CommitRecord } from "../record/records.js";

/** A commit frame that still waits for its turn frame. */
export interface OpenCommit {
  commit: CommitRecord;
  journal: string;
  bootId: string | null;
  place: RecordPlace;
}

export interface BootSeen {
  /** Its journal has a seal. */
  sealed: boolean;
  /** A journal of it is damaged. */
  damaged: boolean;
  /** Its files show that it did not end in order. */
  disturbed: boolean;
  /** Something that it released, or said when it was sealed, may have gone with the power. */
  mayLose: boolean;
}
