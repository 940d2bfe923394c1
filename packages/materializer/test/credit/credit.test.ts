import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { assignCredit, type CreditMember, type CreditRule, sampleStd } from "../../src/credit/credit.js";

const member = (key: string, reward: number | null, extra: Partial<CreditMember> = {}): CreditMember => ({
  key,
  group: "g",
  excluded: false,
  rewards: reward === null ? null : [reward],
  trained_tokens: 10,
  ...extra,
});
const advantages = (members: CreditMember[], rule: CreditRule) =>
  members.map((each) => assignCredit(members, rule, "run").get(each.key)!.advantages);

describe("credit", () => {
  const four = [member("a", 1), member("b", 0), member("c", 0), member("d", 1)];

  it("grpo is (r − mean) ÷ (std + 1e-6) with n − 1", () => {
    const std = Math.sqrt(4 * 0.25) / Math.sqrt(3);
    expect(sampleStd([1, 0, 0, 1])).toBeCloseTo(std, 15);
    expect(advantages(four, "grpo")).toEqual([0.5, -0.5, -0.5, 0.5].map((v) => [expect.closeTo(v / (std + 1e-6), 12)]));
  });

  it("grpo-no-std is r − mean, rloo r − mean of the others, none gives nothing", () => {
    expect(advantages(four, "grpo-no-std")).toEqual([[0.5], [-0.5], [-0.5], [0.5]]);
    expect(advantages(four, "rloo").map((each) => each?.[0])).toEqual(
      [2 / 3, -2 / 3, -2 / 3, 2 / 3].map((v) => expect.closeTo(v, 12)),
    );
    expect(advantages(four, "none")).toEqual([null, null, null, null]);
  });

  it("batch-baseline centres in the group and divides by the std over the output", () => {
    const two = [member("a", 1), member("b", 0), member("c", 4, { group: "h" }), member("d", 0, { group: "h" })];
    const std = sampleStd([0.5, -0.5, 2, -2]);
    expect(advantages(two, "batch-baseline")).toEqual([[0.5 / std], [-0.5 / std], [2 / std], [-2 / std]]);
  });

  it("one member, or no spread, gives 0 and a flag", () => {
    const credits = assignCredit(
      [member("a", 1), member("b", 1, { group: "h" }), member("c", 1, { group: "h" })],
      "grpo",
      "run",
    );
    expect(credits.get("a")).toMatchObject({ advantages: [0], group: { flags: ["single_member"] } });
    expect(credits.get("b")).toMatchObject({ advantages: [0], group: { flags: ["zero_std"] } });
  });

  it("C5.39: excluded and unrewarded rollouts are out of the statistics, have no advantage and no weight, and the group says so", () => {
    const members = [member("a", 1), member("b", 0), member("c", 0, { excluded: true }), member("d", null)];
    const credits = assignCredit(members, "grpo-no-std", "run");
    expect(credits.get("a")).toMatchObject({
      advantages: [0.5],
      weight: 1,
      group: { size: 4, counted: 2, mean: 0.5, flags: ["lost_members"] },
    });
    expect(credits.get("c")).toMatchObject({ advantages: null, weight: 0 });
    expect(credits.get("d")).toMatchObject({ advantages: null, weight: 0 });
  });

  it("token weights are in proportion to trained tokens and average to 1; zero trained tokens weigh 0", () => {
    const members = [
      member("a", 1, { trained_tokens: 30 }),
      member("b", 0, { trained_tokens: 10 }),
      member("c", 0, { trained_tokens: 0 }),
    ];
    const credits = assignCredit(members, "grpo", "token");
    expect([...credits.values()].map((credit) => credit.weight)).toEqual([1.5, 0.5, 0]);
  });

  it("turn rewards give one advantage a turn, over all turns of the group", () => {
    const members = [member("a", 1, { rewards: [1, 0] }), member("b", 0, { rewards: [0.5] })];
    expect(advantages(members, "grpo-no-std")).toEqual([[0.5, -0.5], [0]]);
    expect(advantages(members, "rloo")).toEqual([[0.5, -0.5], [0]]);
  });

  it("advantages of a group sum to 0 under every rule with a baseline, and never depend on other groups' rewards under grpo", () => {
    const reward = fc.double({ min: -10, max: 10, noNaN: true });
    fc.assert(
      fc.property(
        fc.array(reward, { minLength: 2, maxLength: 8 }),
        reward,
        fc.constantFrom("grpo" as const, "grpo-no-std" as const, "rloo" as const),
        (rewards, other, rule) => {
          const members = rewards.map((value, i) => member(String(i), value));
          const alone = advantages(members, rule).map((each) => each![0]!);
          expect(Math.abs(alone.reduce((a, b) => a + b, 0))).toBeLessThan(1e-3);
          expect(
            advantages([...members, member("x", other, { group: "h" })], rule)
              .slice(0, -1)
              .map((each) => each![0]!),
          ).toEqual(alone);
        },
      ),
      { numRuns: 200 },
    );
  });
});
