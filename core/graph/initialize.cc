// Initial values: each element a function of (strategy's seed, initializer's seed, variable's name,
// element's number).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/random.h"
#include "core/graph/infer.h"
#include "core/graph/variable.h"

namespace cairn {
namespace {

using Kind = Initializer::Kind;

bool is_random(Kind kind) {
  return kind == Kind::kUniform || kind == Kind::kNormal || kind == Kind::kTruncatedNormal;
}

// Philox (Salmon et al., SC 2011) maps key and counter to bits, so that any element can be drawn
// alone.
float drawn_value(const Initializer& from, std::uint64_t key, std::uint64_t element) {
  switch (from.kind) {
    case Kind::kUniform:
      return from.a + uniform_float(philox(key, element, 0)[0]) * (from.b - from.a);
    case Kind::kNormal: return from.a + from.b * standard_normal(philox(key, element, 0));
    default: return from.a + from.b * truncated_normal(key, element);
  }
}

// The element's number counts through the whole variable, row by row. A part of it therefore gets
// the same values on whichever shard it lies, and however the variable is cut.
void draw_rows(const VariableSpec& spec, std::uint64_t key_seed, std::int64_t begin,
               std::int64_t count, std::int64_t out_stride, float* out) {
  std::uint64_t key = random_key(random_key(key_seed, spec.initializer.seed), spec.name);
  std::int64_t dim = spec.dim();
  for (std::int64_t r = 0; r < count; ++r)
    for (std::int64_t j = 0; j < dim; ++j)
      out[r * out_stride + j] =
          drawn_value(spec.initializer, key, static_cast<std::uint64_t>((begin + r) * dim + j));
}

template <typename T>
void fill_rows(const VariableSpec& spec, std::int64_t count, std::int64_t out_stride,
               std::byte* out) {
  T value = spec.initializer.kind == Kind::kZeros ? T{} : static_cast<T>(spec.initializer.a);
  for (std::int64_t r = 0; r < count; ++r)
    std::fill_n(reinterpret_cast<T*>(out) + r * out_stride, spec.dim(), value);
}

void fill_rows(const VariableSpec& spec, std::int64_t count, std::int64_t out_stride,
               std::byte* out) {
  switch (spec.dtype) {
    case DType::kFloat32: return fill_rows<float>(spec, count, out_stride, out);
    case DType::kInt32: return fill_rows<std::int32_t>(spec, count, out_stride, out);
    case DType::kInt64: return fill_rows<std::int64_t>(spec, count, out_stride, out);
    case DType::kBool: return fill_rows<bool>(spec, count, out_stride, out);
    case DType::kUint8: return fill_rows<std::uint8_t>(spec, count, out_stride, out);
    default: break;
  }
  CAIRN_CHECK(spec.initializer.kind == Kind::kZeros, "verify_spec() lets only zeros through");
  std::size_t size = dtype_bytes(spec.dtype);
  for (std::int64_t r = 0; r < count; ++r)
    std::memset(out + static_cast<std::size_t>(r * out_stride) * size, 0,
                static_cast<std::size_t>(spec.dim()) * size);
}

// Initial values that were given as a whole: a shard takes its own rows out of them.
void copy_rows(const VariableSpec& spec, std::int64_t begin, std::int64_t count,
               std::int64_t out_stride, std::byte* out) {
  std::size_t size = dtype_bytes(spec.dtype), row = static_cast<std::size_t>(spec.dim()) * size;
  const std::byte* from = spec.initializer.value.raw() + static_cast<std::size_t>(begin) * row;
  for (std::int64_t r = 0; r < count; ++r)
    std::memcpy(out + static_cast<std::size_t>(r * out_stride) * size,
                from + static_cast<std::size_t>(r) * row, row);
}

[[noreturn]] void refuse(const VariableSpec& spec, const std::string& why) {
  throw InvalidArgumentError(str("variable \"", spec.name, "\", ",
                                 TensorType{spec.dtype, spec.shape}.to_string(), ": ", why));
}

// Float16 and bfloat16 are stored and converted, never calculated with, so only values that were
// given fill them.
void verify_initializer(const VariableSpec& spec) {
  const Initializer& from = spec.initializer;
  bool stored_only = spec.dtype == DType::kBfloat16 || spec.dtype == DType::kFloat16;
  if (from.kind == Kind::kConstant && stored_only)
    refuse(spec, "a constant initializer does not make its dtype; give a value");
  if (is_random(from.kind) && spec.dtype != DType::kFloat32)
    refuse(spec, "random initial values are float32");
  if (is_random(from.kind) && !(std::isfinite(from.a) && std::isfinite(from.b)))
    refuse(spec, "its initializer is not finite");
  if (from.kind == Kind::kUniform && from.a > from.b)
    refuse(spec, "its uniform initializer has bounds in the wrong order");
  if ((from.kind == Kind::kNormal || from.kind == Kind::kTruncatedNormal) && from.b < 0)
    refuse(spec, "a deviation below 0");
  if (from.kind != Kind::kValue) return;
  TensorType wanted{spec.dtype, spec.shape};
  if (!from.value.defined() || from.value.type() != wanted)
    refuse(spec, str("its initial value is ",
                     from.value.defined() ? from.value.type().to_string() : "undefined"));
}

}  // namespace

std::string why_not(const RowPolicy& policy) {
  constexpr std::uint32_t kSeenMost = 16;
  constexpr std::int64_t kSketchRowsMost = std::int64_t{1} << 29;
  if (policy.admit_after < 1 || policy.admit_after > kSeenMost)
    return str("admit_after is ", policy.admit_after,
               ": a row is admitted when it has been seen 1 to ", kSeenMost, " times");
  if (!(policy.admit_probability > 0 && policy.admit_probability <= 1))
    return str("admit_probability is ", policy.admit_probability,
               ": it is above 0, and at most 1, which admits every row");
  if (policy.admit_after > 1 && policy.admit_probability < 1)
    return "it has both admit_after and admit_probability: choose one of them";
  if (policy.sketch_rows < 1 || policy.sketch_rows > kSketchRowsMost)
    return str("sketch_rows is ", policy.sketch_rows, ": 1 to ", kSketchRowsMost);
  if (policy.rows_max < 0) return str("rows_max is ", policy.rows_max, ": 0, no bound, or more");
  if (policy.steps_to_live < 0 || policy.steps_to_live > INT32_MAX)
    return str("steps_to_live is ", policy.steps_to_live, ": 0, for ever, to ", INT32_MAX);
  if (!(policy.spared_norm >= 0) || std::isinf(policy.spared_norm))
    return str("spared_norm is ", policy.spared_norm, ": 0 or more");
  if (policy.spared_norm > 0 && policy.steps_to_live == 0)
    return "it has spared_norm without steps_to_live, which alone spares no row: give both";
  return "";
}

void verify_spec(const VariableSpec& spec) {
  if (spec.name.empty()) refuse(spec, "it has no name");
  if (spec.dtype == DType::kString) refuse(spec, "a variable cannot hold strings");
  if (spec.dtype == DType::kFloat64) refuse(spec, "there are no float64 variables; use float32");
  std::int64_t elements = 1;
  for (std::int64_t d : spec.shape.dims()) {
    if (d < 0) refuse(spec, "its shape is not known");
    if (d > 0 && elements > infer::kElementsMax / d) refuse(spec, "it is too large");
    if (d > 0) elements *= d;
  }
  verify_initializer(spec);
  if (!spec.hashed && !spec.policy.keeps_all())
    refuse(spec, "rows are admitted and evicted of hashed variables alone: make it hashed");
  if (const std::string why = why_not(spec.policy); !why.empty()) refuse(spec, why);
  if (!spec.hashed) return;
  if (spec.shape.rank() < 2)
    refuse(spec, "a hashed variable has rows of rank 1 or more: give it the shape [rows, 1]");
  if (spec.initializer.kind == Kind::kValue)
    refuse(spec,
           "a hashed variable cannot be given a value for every row; give it an initializer that "
           "makes them");
}

void verify_whole_read(const VariableSpec& spec) {
  if (spec.hashed)
    refuse(spec, "it is hashed and has no value as a whole; gather the rows that are wanted");
}

// A hashed table holds the rows that were updated, and a rule that moves every row would have to
// make all of them.
void verify_update(const VariableSpec& spec, const UpdateRule& rule, bool sparse) {
  const bool whole_numbers = spec.dtype == DType::kInt32 || spec.dtype == DType::kInt64;
  if (rule.kind == RuleKind::kAssignDiv && spec.dtype != DType::kFloat32)
    refuse(spec, "assign_div changes float32 variables only: an integer cannot be divided by 0");
  if (equal_ids(rule.kind) > EqualIds::kLast && spec.dtype != DType::kFloat32 && !whole_numbers)
    refuse(spec, str(rule_name(rule), " changes float32, int32 and int64 variables only"));
  if (rule == eviction_rule() && (!spec.hashed || !spec.policy.evicts()))
    refuse(spec,
           "its rows cannot be evicted: give it, as a hashed variable, a RowPolicy that is "
           "evictable, or has rows_max or steps_to_live");
  if (!spec.hashed) return;
  if (!sparse) refuse(spec, "it is hashed and cannot be updated as a whole; update rows of it");
  if (is_table_rule(rule.kind))
    refuse(spec, str("it is hashed, and ", rule_name(rule),
                     " changes rows without a gradient too; use a rule of rows, such as LazyAdam's "
                     "or Adagrad's"));
}

void initialize_rows(const VariableSpec& spec, std::uint64_t key_seed, std::int64_t begin,
                     std::int64_t count, std::int64_t out_stride, std::byte* out) {
  CAIRN_CHECK(0 <= begin && 0 <= count && begin + count <= spec.rows(), "rows ", begin, " + ",
              count, " of ", spec.rows());
  if (spec.initializer.kind == Kind::kValue) return copy_rows(spec, begin, count, out_stride, out);
  if (is_random(spec.initializer.kind))
    return draw_rows(spec, key_seed, begin, count, out_stride, reinterpret_cast<float*>(out));
  fill_rows(spec, count, out_stride, out);
}

// The bounds of a uniform distribution whose variance is 2 / (fan_in + fan_out).
Initializer Initializer::glorot_uniform(std::int64_t fan_in, std::int64_t fan_out,
                                        std::uint64_t seed) {
  float limit = std::sqrt(6.0f / static_cast<float>(std::max<std::int64_t>(fan_in + fan_out, 1)));
  return uniform(-limit, limit, seed);
}

Initializer Initializer::he_normal(std::int64_t fan_in, std::uint64_t seed) {
  return normal(0, std::sqrt(2.0f / static_cast<float>(std::max<std::int64_t>(fan_in, 1))), seed);
}

}  // namespace cairn
