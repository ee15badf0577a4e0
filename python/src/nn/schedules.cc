// cairn.nn: learning rates that change with the steps taken.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "layer_object.h"
#include "nn/nn.h"
#include "optimizers.h"
#include "refusing.h"

namespace cairn::python {
namespace {

struct ScheduleObject {
  std::shared_ptr<const nn::LearningRateSchedule> schedule;
};
template <typename S>
struct ScheduleOf : ScheduleObject {};

template <typename S>
nb::class_<ScheduleOf<S>, ScheduleObject> schedule_class(nb::module_& m, const char* name,
                                                         const char* doc) {
  return {m, name, doc};
}
template <typename S, typename O>
void make(ScheduleOf<S>* self, O options) {
  new (self) ScheduleOf<S>{{std::make_shared<S>(std::move(options))}};
}

// A function of Python's that is recorded: from the step to the rate.
class CalledSchedule final : public nn::LearningRateSchedule {
 public:
  explicit CalledSchedule(SharedReference function) : function_(std::move(function)) {}
  Array operator()(const Array& step) const override {
    const Acquired here;
    return cast(array_of(call_recorded(function_, step)), DType::kFloat32);
  }

 private:
  SharedReference function_;
};

template <typename S, typename Options>
void bind_decay(nb::module_& m, const char* name, const char* doc) {
  schedule_class<S>(m, name, doc)
      .def(
          "__init__",
          [](ScheduleOf<S>* self, float initial, std::int64_t steps, float rate, bool staircase) {
            make(self, Options{.initial_learning_rate = initial,
                               .decay_steps = steps,
                               .decay_rate = rate,
                               .staircase = staircase});
          },
          "initial_learning_rate"_a, "decay_steps"_a, "decay_rate"_a, "staircase"_a = false);
}

void bind_cosines(nb::module_& m) {
  schedule_class<nn::CosineDecay>(m, "CosineDecay",
                                  R"(Half a cosine down to alpha times the initial rate.

>>> cairn.nn.CosineDecay(0.1, decay_steps=100)(100).item()
0.0)")
      .def(
          "__init__",
          [](ScheduleOf<nn::CosineDecay>* self, float initial, std::int64_t steps, float alpha,
             std::optional<float> warmup_target, std::int64_t warmup_steps) {
            make(self, nn::CosineDecayOptions{.initial_learning_rate = initial,
                                              .decay_steps = steps,
                                              .alpha = alpha,
                                              .warmup_target = warmup_target,
                                              .warmup_steps = warmup_steps});
          },
          "initial_learning_rate"_a, "decay_steps"_a, "alpha"_a = 0.0,
          "warmup_target"_a = nb::none(), "warmup_steps"_a = 0);
  schedule_class<nn::CosineDecayRestarts>(m, "CosineDecayRestarts",
                                          R"(Half cosines one after another.

>>> cairn.nn.CosineDecayRestarts(0.5, first_decay_steps=100)(0).item()
0.5)")
      .def(
          "__init__",
          [](ScheduleOf<nn::CosineDecayRestarts>* self, float initial, std::int64_t steps,
             float t_mul, float m_mul, float alpha) {
            make(self, nn::CosineDecayRestartsOptions{.initial_learning_rate = initial,
                                                      .first_decay_steps = steps,
                                                      .t_mul = t_mul,
                                                      .m_mul = m_mul,
                                                      .alpha = alpha});
          },
          "initial_learning_rate"_a, "first_decay_steps"_a, "t_mul"_a = 2.0, "m_mul"_a = 1.0,
          "alpha"_a = 0.0);
}

}  // namespace

nn::LearningRate LearningRateLike::in(Kept& kept) const {
  if (nb::isinstance<ScheduleObject>(object))
    return nn::LearningRate(nb::cast<const ScheduleObject&>(object).schedule);
  require_object(object, "a schedule");
  if (PyCallable_Check(object.ptr()) != 0)
    return nn::LearningRate(std::shared_ptr<const nn::LearningRateSchedule>(
        std::make_shared<CalledSchedule>(kept.keep(object))));
  double rate = 0;
  if (!nb::try_cast(object, rate))
    type_error(str("a learning rate is a number, a schedule, or a function of the step, not ",
                   described(object)));
  return nn::LearningRate(rate);
}

void bind_schedules(nb::module_& m) {
  nb::class_<ScheduleObject>(
      m, "LearningRateSchedule",
      "A learning rate that changes with the steps taken.\n\n>>> "
      "isinstance(cairn.nn.CosineDecay(0.1, 10), cairn.nn.LearningRateSchedule)\nTrue")
      .def(
          "__call__",
          [](const ScheduleObject& self, ArrayLike step) {
            return (*self.schedule)(cast(Array(step), DType::kFloat32));
          },
          "step"_a, "The rate at a step, which is 0 at first.");
  bind_decay<nn::ExponentialDecay, nn::ExponentialDecayOptions>(
      m, "ExponentialDecay", R"(initial * rate ** (step / decay_steps).

>>> cairn.nn.ExponentialDecay(0.5, decay_steps=10, decay_rate=0.5)(10).item()
0.25)");
  bind_decay<nn::InverseTimeDecay, nn::InverseTimeDecayOptions>(
      m, "InverseTimeDecay", R"(initial / (1 + rate * step / decay_steps).

>>> cairn.nn.InverseTimeDecay(0.5, decay_steps=10, decay_rate=1.0)(10).item()
0.25)");
  schedule_class<nn::PiecewiseConstantDecay>(m, "PiecewiseConstantDecay",
                                             R"(Another rate from each boundary on.

>>> cairn.nn.PiecewiseConstantDecay([10], [0.5, 0.25])(11).item()
0.25)")
      .def(
          "__init__",
          [](ScheduleOf<nn::PiecewiseConstantDecay>* self, std::vector<std::int64_t> boundaries,
             std::vector<float> values) {
            make(self, nn::PiecewiseConstantDecayOptions{.boundaries = std::move(boundaries),
                                                         .values = std::move(values)});
          },
          "boundaries"_a, "values"_a);
  schedule_class<nn::PolynomialDecay>(m, "PolynomialDecay",
                                      R"(Down to `end_learning_rate` along a power of the step.

>>> cairn.nn.PolynomialDecay(0.5, decay_steps=10, end_learning_rate=0.0)(5).item()
0.25)")
      .def(
          "__init__",
          [](ScheduleOf<nn::PolynomialDecay>* self, float initial, std::int64_t steps, float end,
             float power, bool cycle) {
            make(self, nn::PolynomialDecayOptions{.initial_learning_rate = initial,
                                                  .decay_steps = steps,
                                                  .end_learning_rate = end,
                                                  .power = power,
                                                  .cycle = cycle});
          },
          "initial_learning_rate"_a, "decay_steps"_a, "end_learning_rate"_a = 1e-4, "power"_a = 1.0,
          "cycle"_a = false);
  bind_cosines(m);
}

}  // namespace cairn::python
