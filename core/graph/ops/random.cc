// Random numbers, and the step that they hang on.
#include <atomic>
#include <cmath>

#include "core/graph/infer.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/recording.h"

namespace cairn {
namespace {

using infer::OpTypes;

// Outside of a trace: below 0, so that no operation of a traced function has the same place.
std::atomic<std::int64_t> next_eager_place{-1};

// Each operation draws at a place of its own: two of the same seed are independent, and a function
// that is traced again gets the same places in the same order.
std::int64_t next_place() {
  TraceContext* trace = TraceContext::current();
  return trace != nullptr ? trace->next_random_place()
                          : next_eager_place.fetch_sub(1, std::memory_order_relaxed);
}

// The step and the replica: random numbers are a function of these, of the seed and of the place,
// so a closure that runs again draws the same ones.
OpTypes infer_step_key(const OpInputs&) { return {{DType::kInt64, Shape{2}}}; }

// The shape is an attribute, or that of the second input, of which nothing else is looked at.
OpTypes infer_random(const OpInputs& in, DType made) {
  infer::want_dtype(in, 0, infer::kIntegers);
  in.attributes.get<std::int64_t>("seed");
  in.attributes.get<std::int64_t>("place");
  const auto& dims = in.attributes.get<std::vector<std::int64_t>>("shape");
  for (std::int64_t d : dims)
    if (d < 0)
      infer::fail("a dimension of ", d, "; name one that is known, or an array of the same shape");
  infer::check_made_size(Shape(dims));
  if (in.types.size() == 1) return {{made, Shape(dims)}};
  if (!dims.empty()) infer::fail("it has both a shape and an array to be shaped like");
  return {{made, in.types[1].shape}};
}

OpTypes infer_uniform(const OpInputs& in) {
  double low = in.attributes.get<double>("low"), high = in.attributes.get<double>("high");
  if (!std::isfinite(low) || !std::isfinite(high) || low > high)
    infer::fail("no numbers lie in [", low, ", ", high, ")");
  return infer_random(in, DType::kFloat32);
}

OpTypes infer_normal(const OpInputs& in) {
  double mean = in.attributes.get<double>("mean"), stddev = in.attributes.get<double>("stddev");
  if (!std::isfinite(mean) || !std::isfinite(stddev) || stddev < 0)
    infer::fail("a mean of ", mean, " and a deviation of ", stddev);
  return infer_random(in, DType::kFloat32);
}

// The range is half open, as in NumPy.
OpTypes infer_integers(const OpInputs& in) {
  std::int64_t low = in.attributes.get<std::int64_t>("low"),
               high = in.attributes.get<std::int64_t>("high");
  if (high <= low) infer::fail("no integers lie in [", low, ", ", high, ")");
  return infer_random(in, DType::kInt64);
}

const OpDef kRandomOps[] = {
    {"step_key", 0, 0, "", infer_step_key, nullptr, OpFlags::kStepKey},
    {"random_uniform", 1, 2, "high low place seed shape", infer_uniform, nullptr, OpFlags::kNone,
     shape_of(1)},
    {"random_normal", 1, 2, "mean place seed shape stddev", infer_normal, nullptr, OpFlags::kNone,
     shape_of(1)},
    {"random_truncated_normal", 1, 2, "mean place seed shape stddev", infer_normal, nullptr,
     OpFlags::kNone, shape_of(1)},
    {"random_integers", 1, 2, "high low place seed shape", infer_integers, nullptr, OpFlags::kNone,
     shape_of(1)},
};

// Either a shape, or an array to be shaped like.
struct Form {
  std::vector<std::int64_t> dims;
  Array like;
};
Form form_of(const Shape& shape) { return {shape.dims(), {}}; }
Form form_of(const Array& like) { return {{}, like}; }

Array record_random(std::string_view op, Form form, const RandomOptions& options,
                    Attributes attributes) {
  std::vector<Array> inputs{options.step.defined() ? options.step : step_key()};
  if (form.like.defined()) inputs.push_back(form.like);
  attributes.set("place", next_place());
  attributes.set("seed", static_cast<std::int64_t>(options.seed));
  attributes.set("shape", std::move(form.dims));
  return record(op, std::move(inputs), std::move(attributes));
}

Attributes range(float low, float high) { return {{"low", double{low}}, {"high", double{high}}}; }
Attributes bell(float mean, float stddev) {
  return {{"mean", double{mean}}, {"stddev", double{stddev}}};
}

const Array& defined(const Array& like) {
  if (!like.defined())
    throw InvalidArgumentError("random numbers shaped like an Array without a value");
  return like;
}

}  // namespace

std::span<const OpDef> random_ops() { return kRandomOps; }

Array step_key() { return record("step_key", {}); }

Array random_uniform(const Shape& shape, float low, float high, const RandomOptions& options) {
  return record_random("random_uniform", form_of(shape), options, range(low, high));
}
Array random_uniform_like(const Array& like, float low, float high, const RandomOptions& options) {
  return record_random("random_uniform", form_of(defined(like)), options, range(low, high));
}
Array random_normal(const Shape& shape, float mean, float stddev, const RandomOptions& options) {
  return record_random("random_normal", form_of(shape), options, bell(mean, stddev));
}
Array random_normal_like(const Array& like, float mean, float stddev,
                         const RandomOptions& options) {
  return record_random("random_normal", form_of(defined(like)), options, bell(mean, stddev));
}
Array random_truncated_normal(const Shape& shape, float mean, float stddev,
                              const RandomOptions& options) {
  return record_random("random_truncated_normal", form_of(shape), options, bell(mean, stddev));
}
Array random_truncated_normal_like(const Array& like, float mean, float stddev,
                                   const RandomOptions& options) {
  return record_random("random_truncated_normal", form_of(defined(like)), options,
                       bell(mean, stddev));
}
Array random_integers(const Shape& shape, std::int64_t low, std::int64_t high,
                      const RandomOptions& options) {
  return record_random("random_integers", form_of(shape), options, {{"low", low}, {"high", high}});
}
Array random_integers_like(const Array& like, std::int64_t low, std::int64_t high,
                           const RandomOptions& options) {
  return record_random("random_integers", form_of(defined(like)), options,
                       {{"low", low}, {"high", high}});
}

// Inverted dropout (Srivastava et al., JMLR 2014): what is kept is scaled up by 1 / (1 - rate), so
// that the expectation stays x and nothing is to be scaled when the model is used.
Array dropout(const Array& x, float rate, const RandomOptions& options) {
  if (!(rate >= 0 && rate < 1))
    throw InvalidArgumentError(str("dropout: a rate of ", rate, "; it must be in [0, 1)"));
  if (rate == 0) return x;
  Array kept = greater_equal(random_uniform_like(x, 0, 1, options), rate);
  return where(kept, x * (1.0f / (1.0f - rate)), 0.0f);
}

}  // namespace cairn
