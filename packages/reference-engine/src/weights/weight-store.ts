import { TitoError } from "@tito/format";
import { WeightVersion } from "../generate/weight-version.js";
import { loadModel, type Model } from "../lm/index.js";
import { createLmPolicy, type LmPolicyOptions } from "../policy/lm.js";
import type { Policy } from "../policy/policy.js";
import { assertSameShape, assertSameVocabulary } from "./same-model.js";

/** A policy with the name of its weights. An answer holds on to the object it began with, so that both stay together. */
export interface NamedWeights {
  readonly policy: Policy;
  readonly version: WeightVersion;
  /** The directory they were read from. */
  readonly dir: string;
}

/** The weights that new answers begin with. Every label names one set of weights for as long as the engine runs. */
export class WeightStore {
  #current: NamedWeights;
  readonly #model: Model | null;
  readonly #options: LmPolicyOptions;
  /** Digest of the weights that each label was given to. */
  readonly #labels = new Map<string, string>();
  #digest: string;
  #updates = 0;

  /** `model` is null for a script: it recites, and has no weights to replace. */
  constructor(first: { policy: Policy; dir: string; model: Model | null }, options: LmPolicyOptions) {
    this.#current = { policy: first.policy, version: new WeightVersion(), dir: first.dir };
    this.#model = first.model;
    this.#options = options;
    this.#digest = first.model?.digest ?? "script";
    this.#labels.set(this.#current.version.current, this.#digest);
  }

  get current(): NamedWeights {
    return this.#current;
  }

  /**
   * Reads the weights of a model directory; a directory without a tokenizer, as a trainer saves it, has the running one's.
   * Throws `bad_request` for a shape or vocabulary other than the running one's, `bundle_invalid` for files that cannot be used.
   */
  async read(dir: string): Promise<Model> {
    if (this.#model === null) throw new TitoError("bad_request", "a script has no weights to replace");
    const { config, tokenizer } = this.#model;
    return loadModel(dir, {
      tokenizer,
      check(freshConfig, freshTokenizer) {
        assertSameShape(config, freshConfig, dir);
        assertSameVocabulary(tokenizer, freshTokenizer, dir);
      },
    });
  }

  /** Throws `bad_request` when the label belongs to other weights than these. */
  assertFree(label: string, digest: string): void {
    const owner = this.#labels.get(label);
    if (owner !== undefined && owner !== digest)
      throw new TitoError("bad_request", `weight_version ${label} names other weights`, {
        hint: "give every update a label of its own",
      });
  }

  /** From the next answer on: these weights under this label. Without a label it is `update-N`. One step: nobody sees one without the other. */
  use(model: Model, dir: string, label: string | null): string {
    const name = label ?? `update-${this.#updates + 1}`;
    this.assertFree(name, model.digest);
    const version = new WeightVersion();
    version.set(name);
    this.#updates += 1;
    this.#digest = model.digest;
    this.#labels.set(name, model.digest);
    this.#current = { policy: createLmPolicy(model, this.#options), version, dir };
    return name;
  }

  /** As `rename`, and from the next token on, also of answers under way with these weights. */
  relabel(label: string): void {
    this.assertFree(label, this.#digest);
    this.#labels.set(label, this.#digest);
    this.#current.version.set(label);
  }

  /** Gives the running weights another label, from the next answer on. */
  rename(label: string): void {
    this.assertFree(label, this.#digest);
    this.#labels.set(label, this.#digest);
    const version = new WeightVersion();
    version.set(label);
    this.#current = { ...this.#current, version };
  }
}
