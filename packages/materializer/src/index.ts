/**
 * @tito/materializer owns the way from evidence to samples: read, select, build, score, reward, credit, pack, write.
 * It never changes what was captured.
 */

export { type HealthOptions, measureHealth } from "./across/health.js";
export { DEFAULT_THRESHOLDS, type Health, judgeHealth, renderHealth } from "./across/health-report.js";
export { type StatsOptions, type StatsResult, statsOf } from "./across/stats.js";
export { renderStats } from "./across/stats-report.js";
export type { Stats } from "./across/sum-figures.js";
export { type OutputRow, type ReadPacked, type ReadRun, type ReadSample, readOutput } from "./audit/read-output.js";
export { type OutputVerdict, type VerifyOptions, verifyOutput } from "./audit/verify-output.js";
export { assertSample, fillArrays, type SampleArrays } from "./build/arrays.js";
export {
  type BuiltTrajectory,
  buildSamples,
  type Outside,
  type PlannedSample,
  type PlannedSpan,
} from "./build/build.js";
export { addCoverage, assertCoverage, type Coverage, coverageOf } from "./build/coverage.js";
export { selectTurns } from "./build/select.js";
export { assignCredit, type Credit, type CreditMember, type CreditRule, sampleWeight } from "./credit/credit.js";
export { type Decode, type ExplainTokenOptions, explainToken, type TokenExplanation } from "./explain/explain-token.js";
export { type ExplainTurnOptions, explainTurn, type TurnExplanation } from "./explain/explain-turn.js";
export { type InspectedSegment, type InspectedTurn, type Inspection, inspectTrajectory } from "./explain/inspect.js";
export { type ReportTable, renderReport, renderTokenExplanation, renderTurnExplanation } from "./explain/report.js";
export { type FollowOptions, followRuns } from "./jobs/follow.js";
export { type MaterializeOptions, materialize, type Progress, type Report, type RunLine } from "./jobs/materialize.js";
export { lossWords } from "./read/capture-loss.js";
export type { Delivery, EvidenceSegment, EvidenceTurn, TrajectoryEvidence } from "./read/evidence.js";
export { readEvidence, readIdentity } from "./read/read.js";
export { type LaneRules, parseLaneRules } from "./recipe/lane-rules.js";
export { loadPolicy, type Policy, type PolicyFlags, policyDigest, printPolicy } from "./recipe/policy.js";
export {
  MASK_REASONS,
  type MaskReason,
  SPAN_KINDS,
  SPAN_REASONS,
  TERMINATIONS,
  type Termination,
} from "./recipe/reasons.js";
export { TRAINERS, type Trainer } from "./recipe/trainers.js";
export { FORMATS, type Format } from "./write/encoded-run.js";
export { type OutputManifest, outputManifestSchema } from "./write/output-manifest.js";
export { type RolloutRun, rolloutRunJsonSchema, rolloutRunSchema } from "./write/rollout-run.js";
