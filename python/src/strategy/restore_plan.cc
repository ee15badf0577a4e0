// Plans of restores: which rows of a checkpoint go into which of the program's variables.
#include "coordinator/restore/restore_plan.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "coordinator/checkpoint/manifest_io.h"
#include "core/disk/disk.h"
#include "options.h"
#include "storage/manifest.h"
#include "values.h"

namespace cairn::python {
namespace {

// Variables as plans know them: with the rule of the optimizer that has claimed them, if any.
std::vector<ProgramVariable> made_of(nb::handle variables) {
  std::vector<ProgramVariable> all;
  for (nb::handle each : nb::iter(variables))
    all.push_back({nb::cast<const OwnedVariable&>(each).get().shared_spec(), {}});
  return all;
}
const VariableSpec& spec_of(const OwnedVariable& variable) { return variable.get().spec(); }
#define CAIRN_VARIABLES "variables: collections.abc.Sequence[Variable]"

void bind_parts(nb::module_& m) {
  FieldsOf<RowMove>(m, "RowMove", "How rows of a checkpoint become rows of a variable.")
      .add("from_", &RowMove::from, "The checkpoint's variable.")
      .add("slots", &RowMove::slots, "False: optimizers begin anew.")
      .add("rows", &RowMove::rows, "Those of the program's variable.")
      .report()
      .def_prop_ro(
          "numbers",
          [](const RowMove& of) -> std::optional<std::vector<std::int64_t>> {
            if (of.numbers == nullptr) return std::nullopt;
            return *of.numbers;
          },
          "Where each row goes; None: it keeps its number.");
  nb::class_<SavedVariable>(m, "SavedVariable", "A variable as a checkpoint has it.")
      .def_prop_ro(
          "type", [](const SavedVariable& of) { return of.type.to_string(); },
          "\"float32[100, 8]\".")
      .def_ro("rule", &SavedVariable::rule, "The rule that has slots.")
      .def_ro("hashed", &SavedVariable::hashed)
      .def_ro("slots_dropped", &SavedVariable::slots_dropped, "It was saved without them.");
}

void bind_questions(nb::class_<RestorePlan>& plan) {
  plan.def("has", &RestorePlan::has, "variable"_a, "Whether there is anything for the variable.")
      .def("leaves_out", &RestorePlan::leaves_out, "variable"_a,
           "Whether the options say that it begins anew.")
      .def(
          "move_of",
          [](const RestorePlan& of, const OwnedVariable& v) { return of.move_of(spec_of(v)); },
          "variable"_a, "The rows that go into it; None: it begins anew.")
      .def(
          "fits", [](const RestorePlan& of, const OwnedVariable& v) { return of.fits(spec_of(v)); },
          "variable"_a, "Whether they fit it.")
      .def(
          "as_saved",
          [](const RestorePlan& of, const OwnedVariable& v) { return of.as_saved(spec_of(v)); },
          "variable"_a, "Whether its rows are those of its name, as they are.")
      .def(
          "may_not_fit",
          [](const RestorePlan& of, const OwnedVariable& v) { return of.may_not_fit(spec_of(v)); },
          "variable"_a, "Whether only reading the rows will tell.")
      .def(
          "verify",
          [](const RestorePlan& of, nb::handle variables) { of.verify(made_of(variables)); },
          "variables"_a, nb::sig("def verify(self, " CAIRN_VARIABLES ") -> None"),
          "Raises FailedPreconditionError, which names each that its rows do not fit.")
      .def(
          "compare",
          [](const RestorePlan& of, nb::handle variables) {
            return of.compare(made_of(variables));
          },
          "variables"_a, nb::sig("def compare(self, " CAIRN_VARIABLES ") -> RestoreDifferences"))
      .def(
          "text",
          [](const RestorePlan& of, nb::handle variables) { return of.text(made_of(variables)); },
          "variables"_a, nb::sig("def text(self, " CAIRN_VARIABLES ") -> str"), "In words.")
      .def(
          "lines",
          [](const RestorePlan& of, nb::handle variables) { return of.lines(made_of(variables)); },
          "variables"_a, nb::sig("def lines(self, " CAIRN_VARIABLES ") -> str"),
          "The lines of these variables alone.")
      .def(
          "unusual",
          [](const RestorePlan& of, nb::handle variables) {
            return of.unusual(made_of(variables));
          },
          "variables"_a, nb::sig("def unusual(self, " CAIRN_VARIABLES ") -> bool"),
          "Whether there is something in it that was not expected, or was asked for.");
}
#undef CAIRN_VARIABLES

}  // namespace

void bind_restore_plan(nb::module_& m) {
  bind_parts(m);
  nb::class_<RestorePlan> plan(m, "RestorePlan", R"(What a restore would take of a checkpoint.

>>> import tempfile
>>> strategy = cairn.OneDeviceStrategy()
>>> with strategy.scope():
...     v = cairn.Variable([1.0], name="v")
>>> plan = cairn.RestorePlan(strategy.save(tempfile.mkdtemp()))
>>> plan.saved["v"].type, plan.fits(v)
('float32[1]', True))");
  plan.def(
          "__init__",
          [](RestorePlan* self, const std::string& checkpoint, nb::handle options) {
            const RestoreOptions wanted = restore_options_of(options);
            const storage::Manifest manifest =
                released([&] { return storage::read_manifest(system_disk(), checkpoint); });
            new (self) RestorePlan(saved_variables(manifest), checkpoint, wanted);
          },
          "checkpoint"_a, "options"_a = nb::none(),
          nb::sig("def __init__(self, checkpoint: str, options: RestoreOptions | None = None) -> "
                  "None"))
      .def_prop_ro("saved", &RestorePlan::saved, "The checkpoint's variables, by name.")
      .def_prop_ro("folder", &RestorePlan::folder)
      .def_prop_ro("chooses", &RestorePlan::chooses,
                   "Whether not each variable goes into the one of its name.")
      .def_prop_ro("sources", &RestorePlan::sources,
                   "The program's names, with those of the checkpoint.");
  bind_questions(plan);
}

}  // namespace cairn::python
