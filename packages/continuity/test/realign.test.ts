import { describe, expect, it } from "vitest";
import { realign } from "../src/index.js";

describe("realign", () => {
  const last_sampled = { start: 10, end: 20 };

  it("joins where the match ends inside the last sampled span and little is lost", () => {
    expect(realign({ last_sampled, match_tokens: 18, max_lost_tokens: 2 })).toEqual({ at: 18, kept: 8, lost: 2 });
    expect(realign({ last_sampled, match_tokens: 11, max_lost_tokens: 9 })).toEqual({ at: 11, kept: 1, lost: 9 });
  });

  it("joins nothing by default, beyond the bound, without a kept sampled token, or where nothing is lost", () => {
    expect(realign({ last_sampled, match_tokens: 19, max_lost_tokens: 0 })).toBeNull();
    expect(realign({ last_sampled, match_tokens: 17, max_lost_tokens: 2 })).toBeNull();
    expect(realign({ last_sampled, match_tokens: 10, max_lost_tokens: 100 })).toBeNull();
    expect(realign({ last_sampled, match_tokens: 5, max_lost_tokens: 100 })).toBeNull();
    expect(realign({ last_sampled, match_tokens: 20, max_lost_tokens: 100 })).toBeNull();
    expect(realign({ last_sampled, match_tokens: 25, max_lost_tokens: 100 })).toBeNull();
  });
});
