/**
 * A radix tree over token ids: every line of a trajectory is a path from the root, and a shared prefix is stored once.
 * An edge is a slice of a growing array, so that a conversation that only grows stays one edge and one memory compare.
 */
import { commonPrefix } from "./ids.js";

/** A growing array of ids that several edges may share; only its last edge may grow it. */
interface Store {
  ids: Int32Array;
  used: number;
}

/** Something that ends at a depth on a path: a turn's prompt or its checkpoint. */
interface Mark {
  depth: number;
  call_id: string;
}

export type MarkKind = "prompts" | "checkpoints";

/** An edge and the place where it ends. Holds the ids of depths `from` (inclusive) to `to` (exclusive) of its path. */
export interface TreeNode {
  parent: TreeNode | null;
  from: number;
  to: number;
  store: Store;
  /** Where the edge's first id stands in the store. */
  start: number;
  children: Map<number, TreeNode>;
  prompts: Mark[];
  checkpoints: Mark[];
  /** Segment number → depth, for lines that end on this edge. */
  lines: Map<number, number>;
}

/** A depth on a path. `depth` may lie above `node` after the edge was split: use {@link climb}. */
export interface Point {
  node: TreeNode;
  depth: number;
}

export function createTree(): TreeNode {
  return newNode({ parent: null, from: 0, to: 0, store: { ids: new Int32Array(0), used: 0 }, start: 0 });
}

function newNode(edge: Pick<TreeNode, "parent" | "from" | "to" | "store" | "start">): TreeNode {
  return { ...edge, children: new Map(), prompts: [], checkpoints: [], lines: new Map() };
}

/** The edge that holds the depth: `from < depth <= to`, or the root for depth 0. */
export function climb(point: Point): Point {
  let node = point.node;
  while (node.parent !== null && point.depth <= node.from) node = node.parent;
  return { node, depth: point.depth };
}

/** Follows `ids` from the root as far as any line goes: the longest common prefix with all lines. Compares each id at most once. */
export function walk(root: TreeNode, ids: Int32Array): Point {
  let node = root;
  let depth = 0;
  while (depth < ids.length) {
    const child = node.children.get(ids[depth]!);
    if (child === undefined) break;
    const length = Math.min(child.to - child.from, ids.length - depth);
    const match = commonPrefix({ ids: child.store.ids, start: child.start }, { ids, start: depth }, length);
    node = child;
    depth += match;
    if (match < child.to - child.from) break;
  }
  return { node, depth };
}

/** Adds a path that continues with `ids` at a point, and returns its end. What is there already is not stored again. */
export function insert(at: Point, ids: Int32Array): Point {
  let { node, depth } = climb(at);
  let next = 0;
  while (next < ids.length) {
    if (depth < node.to) {
      const length = Math.min(node.to - depth, ids.length - next);
      const edge = { ids: node.store.ids, start: node.start + depth - node.from };
      const match = commonPrefix(edge, { ids, start: next }, length);
      depth += match;
      next += match;
      if (match < length) node = split(node, depth);
      continue;
    }
    const child = node.children.get(ids[next]!);
    if (child !== undefined) {
      node = child;
      continue;
    }
    node = addIds(node, ids.subarray(next));
    depth = node.to;
    break;
  }
  return { node, depth };
}

/** Cuts an edge at a depth. The node keeps the lower part, so that points at its end stay valid; the new upper part is returned. */
function split(node: TreeNode, depth: number): TreeNode {
  const upper = newNode({ parent: node.parent, from: node.from, to: depth, store: node.store, start: node.start });
  const first = node.store.ids[node.start]!;
  node.parent!.children.set(first, upper);
  node.start += depth - node.from;
  node.from = depth;
  node.parent = upper;
  upper.children.set(node.store.ids[node.start]!, node);
  for (const kind of ["prompts", "checkpoints"] as const) {
    const cut = upperBound(node[kind], depth);
    upper[kind] = node[kind].splice(0, cut);
  }
  for (const [line, end] of node.lines) {
    if (end > depth) continue;
    node.lines.delete(line);
    upper.lines.set(line, end);
  }
  return upper;
}

/** Puts new ids behind the end of an edge: grows the edge where it is the last of its store and nothing follows, else a new edge. */
function addIds(node: TreeNode, ids: Int32Array): TreeNode {
  const { store } = node;
  const grows = node.parent !== null && node.children.size === 0 && store.used === node.start + node.to - node.from;
  if (!grows) {
    const copy = { ids: ids.slice(), used: ids.length };
    const child = newNode({ parent: node, from: node.to, to: node.to + ids.length, store: copy, start: 0 });
    node.children.set(ids[0]!, child);
    return child;
  }
  const needed = store.used + ids.length;
  if (needed > store.ids.length) {
    const wider = new Int32Array(Math.max(needed, Math.ceil(store.ids.length * 1.5)));
    wider.set(store.ids.subarray(0, store.used));
    store.ids = wider;
  }
  store.ids.set(ids, store.used);
  store.used = needed;
  node.to += ids.length;
  return node;
}

/** Notes that a turn's prompt or checkpoint ends at a point. */
export function addMark(at: Point, kind: MarkKind, callId: string): void {
  const { node, depth } = climb(at);
  node[kind].splice(upperBound(node[kind], depth), 0, { depth, call_id: callId });
}

/** The call ids of the deepest marks at or above a point on its path, all of one depth, in the order they were added. */
export function deepestMarks(at: Point, kind: MarkKind): { depth: number; call_ids: string[] } | null {
  for (let node: TreeNode | null = climb(at).node; node !== null; node = node.parent) {
    const marks = node[kind];
    const end = upperBound(marks, at.depth);
    if (end === 0) continue;
    const depth = marks[end - 1]!.depth;
    let first = end - 1;
    while (first > 0 && marks[first - 1]!.depth === depth) first--;
    return { depth, call_ids: marks.slice(first, end).map((mark) => mark.call_id) };
  }
  return null;
}

/** Moves the end of a segment's line. */
export function moveLine(segment: number, from: Point | null, to: Point): void {
  if (from !== null) climb(from).node.lines.delete(segment);
  const end = climb(to);
  end.node.lines.set(segment, end.depth);
}

/** The segments whose lines pass through a point or end there. Work in the number of lineages. */
export function linesThrough(at: Point): number[] {
  const { node, depth } = climb(at);
  const found: number[] = [];
  for (const [line, end] of node.lines) if (end >= depth) found.push(line);
  const open = [...node.children.values()];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    found.push(...next.lines.keys());
    open.push(...next.children.values());
  }
  return found;
}

/** The id at a position (0-based) of the path to a node, which must reach beyond it. */
export function idAt(node: TreeNode, position: number): number {
  const holder = climb({ node, depth: position + 1 }).node;
  return holder.store.ids[holder.start + position - holder.from]!;
}

/** A copy of all ids from the root to a point. */
export function idsTo(at: Point): Int32Array {
  const out = new Int32Array(at.depth);
  let end = at.depth;
  for (let node: TreeNode | null = climb(at).node; node !== null && end > 0; node = node.parent) {
    out.set(node.store.ids.subarray(node.start, node.start + end - node.from), node.from);
    end = node.from;
  }
  return out;
}

/** Index of the first mark deeper than `depth`. */
function upperBound(marks: readonly Mark[], depth: number): number {
  let low = 0;
  let high = marks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (marks[middle]!.depth <= depth) low = middle + 1;
    else high = middle;
  }
  return low;
}
