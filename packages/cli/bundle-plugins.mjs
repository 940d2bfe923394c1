// What both forms of the sidecar's one file leave out: dist/tito-sidecar.mjs (bundle.mjs) and the release (scripts/release).

/** node-server asks for HTTP/2's classes only to tell its requests apart. Ours is an HTTP/1.1 server, and loading node:http2 would be paid at every start. */
export const withoutHttp2 = {
  name: "without-http2",
  setup(builder) {
    builder.onResolve({ filter: /^node:http2$/ }, () => ({ path: "http2", namespace: "without-http2" }));
    builder.onLoad({ filter: /.*/, namespace: "without-http2" }, () => ({
      contents: "export class Http2ServerRequest {}\nexport const constants = {};",
    }));
  },
};

/** msgpackr by the entry that does not look for its optional native addon. */
export const withoutAddon = {
  name: "without-addon",
  setup(builder) {
    builder.onResolve({ filter: /^msgpackr$/ }, ({ kind, resolveDir }) =>
      builder.resolve("msgpackr/pack", { kind, resolveDir }),
    );
  },
};
