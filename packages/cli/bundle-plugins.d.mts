import type { Plugin } from "esbuild";

export const withoutHttp2: Plugin;
export const withoutAddon: Plugin;
