/** Values by text. The older half is dropped when the texts together pass the limit, so that memory stays bounded. */
export class PieceCache<T> {
  readonly #unitsMax: number;
  readonly #unitsOf: (text: string, value: T) => number;
  #young = new Map<string, T>();
  #old = new Map<string, T>();
  #youngUnits = 0;

  /** `unitsMax`: how many UTF-16 units of text the cache may hold. `unitsOf`: how many an entry holds; default is its key's length. */
  constructor(unitsMax: number, unitsOf: (text: string, value: T) => number = (text) => text.length) {
    this.#unitsMax = unitsMax;
    this.#unitsOf = unitsOf;
  }

  get(text: string): T | undefined {
    const young = this.#young.get(text);
    if (young !== undefined) return young;
    const old = this.#old.get(text);
    if (old !== undefined) this.set(text, old);
    return old;
  }

  set(text: string, value: T): void {
    this.#young.set(text, value);
    this.#youngUnits += this.#unitsOf(text, value) + 64;
    if (this.#youngUnits < this.#unitsMax / 2) return;
    this.#old = this.#young;
    this.#young = new Map();
    this.#youngUnits = 0;
  }
}
