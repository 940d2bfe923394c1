/** Request bodies against their digests, in the order of the journals. */

import type { RecordPlace } from "../read/trajectory-log.js";
import { BodyReader } from "../record/body-delta.js";
import { TitoError } from "../record/errors.js";
import type { BodyDelta } from "../record/records.js";

export class BodyCheck {
  readonly found: { place: RecordPlace; message: string; lossExplains: boolean }[] = [];
  private bodies = new BodyReader();

  /** A boot builds on no body of another. */
  startBoot(): void {
    this.bodies = new BodyReader();
  }

  add(callId: string, body: BodyDelta, place: RecordPlace): void {
    try {
      this.bodies.read(callId, body);
    } catch (error) {
      if (!TitoError.is(error)) throw error;
      this.found.push({ place, message: error.message, lossExplains: error.code === "not_found" });
    }
  }
}
