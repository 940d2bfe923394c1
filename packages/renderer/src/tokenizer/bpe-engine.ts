/**
 * The BPE engine: tiktoken's WebAssembly module, loaded from bytes so that a renderer bundle can carry the exact engine it was made with.
 * It says which Unicode class a character has; merging is our own (decision 0120). One instance of the module serves all vocabularies of a thread.
 */
import { TitoError } from "@tito/format";
import type { Tiktoken } from "tiktoken/lite";
import * as lite from "tiktoken/lite/init";

type TiktokenClass = new (ranks: string, specials: Record<string, number>, pattern: string) => Tiktoken;
type LiteModule = typeof lite & { Tiktoken: TiktokenClass };

/** The part of the runtime's WebAssembly that is used; the Node typings of this line do not declare it. */
const Wasm = (globalThis as unknown as { WebAssembly: WasmRuntime }).WebAssembly;
interface WasmRuntime {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object, imports: unknown) => never;
}

let loaded: Promise<TiktokenClass> | undefined;

/** Instantiates the engine; later calls return the first instance, whatever bytes they bring. @throws TitoError `bundle_invalid`. */
export function loadBpeEngine(wasm: Uint8Array): Promise<TiktokenClass> {
  loaded ??= (async () => {
    try {
      await lite.init(async (imports) => new Wasm.Instance(new Wasm.Module(wasm), imports));
      return (lite as LiteModule).Tiktoken;
    } catch (cause) {
      loaded = undefined;
      throw new TitoError("bundle_invalid", "the BPE engine (bpe.wasm) does not load", { cause });
    }
  })();
  return loaded;
}

export type { TiktokenClass };
