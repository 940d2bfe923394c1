/** GRPO's advantages of the transcript arms, by the materializer's own rule; the tito arm reads its own from the materialized rows. */
import { assignCredit } from "@tito/materializer";

/** One advantage a rollout, in their order. */
export function groupAdvantages(rollouts: readonly { readonly groupId: string; readonly reward: number }[]): number[] {
  const members = rollouts.map(({ groupId, reward }, index) => ({
    key: String(index),
    group: groupId,
    excluded: false,
    rewards: [reward],
    trained_tokens: 1,
  }));
  const credits = assignCredit(members, "grpo", "run");
  return members.map(({ key }) => credits.get(key)!.advantages![0]!);
}
