import type { Engine } from "../engine.js";
import type { Fault } from "../faults/schema.js";
import type { Step } from "../generate/loop.js";
import type { Passage } from "../generate/traffic.js";
import type { NamedWeights } from "../weights/weight-store.js";
import type { Choice, GenerationCall, ReplyFormat, Usage } from "./call.js";
import type { Reply } from "./reply.js";

/** One request under way, as the senders need it. */
export interface Run {
  engine: Engine;
  path: string;
  reply: Reply;
  call: GenerationCall;
  choices: Choice[];
  /** What the request began with; an update meanwhile changes nothing for it. */
  weights: NamedWeights;
  passage: Passage;
  format: ReplyFormat;
  fault: Fault | null;
  usage(): Usage;
  /** Samples a choice and logs it when it ends, before its last step is seen. */
  steps(choice: Choice): AsyncGenerator<Step, void, void>;
}
