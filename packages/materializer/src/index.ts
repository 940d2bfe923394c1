/**
 * @tito/materializer owns the way from evidence to samples: read, select, build, score, reward, credit, pack, write.
 * It never changes what was captured.
 */
export {};
