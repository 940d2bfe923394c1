/** What a renderer bundle told of the model, as the journal recorded it. Pure. */
import type { TrajectoryLog } from "@tito/format";
import { z } from "zod";

export const modelFactsSchema = z.strictObject({
  vocabulary_size: z.int(),
  eos_ids: z.array(z.int()),
  pad_id: z.int().nullable(),
  tokenizer_sha256: z.string(),
  chat_template_sha256: z.string(),
});
export type ModelFacts = z.infer<typeof modelFactsSchema>;

/** One entry a boot that told; a recorder that renders by itself tells nothing, and neither does one that cannot be read. */
export function modelFactsOf(log: TrajectoryLog): ModelFacts[] {
  return log.journals.flatMap(({ header }) => {
    if (header === null) return [];
    try {
      const { model_facts } = JSON.parse(header.config_json) as { model_facts?: unknown };
      const facts = modelFactsSchema.safeParse(model_facts);
      return facts.success ? [facts.data] : [];
    } catch {
      return [];
    }
  });
}
