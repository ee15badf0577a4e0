// Checkpoints: when and how they are saved, and what a restore takes of them.
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "options.h"

namespace cairn::python {
namespace {

using storage::Compression;
using storage::RowEncoding;
using storage::RowForm;
using storage::SlotForm;

void bind_row_encoding(nb::module_& m) {
  FieldsOf<RowEncoding> fields(m, "RowEncoding", R"(How a checkpoint holds rows.

>>> cairn.CheckpointPolicy(folder="out", encoding=cairn.RowEncoding(rows="bf16", slots="dropped"))
<cairn.CheckpointPolicy "out">)");
  fields
      .word("rows", &RowEncoding::rows,
            {{"exact", RowForm::kExact}, {"bf16", RowForm::kBfloat16}, {"int8", RowForm::kInt8}},
            "\"exact\", \"bf16\" or \"int8\".")
      .word("slots", &RowEncoding::slots,
            {{"exact", SlotForm::kExact},
             {"bf16", SlotForm::kBfloat16},
             {"dropped", SlotForm::kDropped}},
            "\"exact\", \"bf16\" or \"dropped\".")
      .word("compression", &RowEncoding::compression,
            {{"none", Compression::kNone}, {"zstd", Compression::kZstd}}, "\"none\" or \"zstd\".")
      .add("variables", &RowEncoding::variables,
           "Patterns of names: `rows` and `slots` are said of these, and of hashed ones always.")
      .options()
      .def_prop_ro("exact", &RowEncoding::exact, "Whether nothing is lost.");
}

void bind_checkpoint_policy(nb::module_& m) {
  using Policy = CheckpointPolicy;
  FieldsOf<Policy> fields(m, "CheckpointPolicy", R"(When to save, where, and what to keep.

>>> policy = cairn.CheckpointPolicy(folder="out", every_steps=1000, keep_last=3)
>>> policy.keep_last
3)");
  fields.add("folder", &Policy::folder, "Where checkpoints are made, each in its own folder.")
      .add("every_steps", &Policy::every_steps, "0: not by steps.")
      .add("every_seconds", &Policy::every_seconds, "0: not by time.")
      .add("keep_last", &Policy::keep_last, "Older ones of this run are removed.")
      .add("lasting", &Policy::lasting, "False: it does not count as the newest.")
      .add("full_every", &Policy::full_every,
           "One of so many holds all rows, the others those that changed.")
      .add("consolidate_after", &Policy::consolidate_after,
           "So many deltas are made one full checkpoint; 0: never.")
      .add("keep_every", &Policy::keep_every, "Those whose number is a multiple of this stay.")
      .with(
          "encoding", "RowEncoding", "How rows lie in the files.",
          [](const Policy& of) { return of.encoding; },
          [](Policy& of, RowEncoding value) { of.encoding = std::move(value); })
      .add("local_folder", &Policy::local_folder,
           "Below it each ps writes its rows, on a disk of its own machine.")
      .add("single_writer", &Policy::single_writer, "No other run saves into the folder.")
      .options()
      .def("__repr__",
           [](const Policy& of) { return str("<cairn.CheckpointPolicy \"", of.folder, "\">"); });
}

void bind_restore_options(nb::module_& m) {
  using Options = RestoreOptions;
  FieldsOf<Options> fields(m, "RestoreOptions",
                           R"(Which of a checkpoint's variables a restore takes, and into which.

>>> options = cairn.RestoreOptions(include=["embedding/*"], slots=False)
>>> options.include
['embedding/*'])");
  fields.add("new_data", &Options::new_data, "Datasets begin at their start.")
      .add("positions_of", &Options::positions_of,
           "Names of the datasets that go on where they stood; none: all.")
      .add("global_step", &Options::global_step, "False: the step begins at 0.")
      .add("on_demand", &Options::on_demand, "Training goes on before all rows have been read.")
      .add("include", &Options::include, "Patterns of the names that are restored; none: all.")
      .add("exclude", &Options::exclude, "Patterns of names that are not.")
      .add("rename", &Options::rename, "The checkpoint's names, with those of the program.")
      .add("slots", &Options::slots, "False: optimizers begin anew.")
      .with(
          "rows", "collections.abc.Mapping[str, collections.abc.Sequence[int]]",
          "By variable, where each row of the checkpoint goes; -1: nowhere.",
          [](const Options& of) {
            std::map<std::string, std::vector<std::int64_t>> rows;
            for (const auto& [name, numbers] : of.rows) rows[name] = *numbers;
            return rows;
          },
          [](Options& of, const std::map<std::string, std::vector<std::int64_t>>& rows) {
            of.rows.clear();
            for (const auto& [name, numbers] : rows)
              of.rows[name] = std::make_shared<const RowNumbers>(numbers);
          })
      .options()
      .def_prop_ro("chooses", &Options::chooses,
                   "Whether not each variable goes into the one of its name.");
  m.def(
      "rows_by_value",
      [](std::vector<std::string> old_vocab, std::vector<std::string> new_vocab,
         const std::string& oov) {
        return rows_by_value(
            {std::move(old_vocab), std::move(new_vocab),
             value_of_word<Oov>("oov", oov, {{"first", Oov::kFirst}, {"last", Oov::kLast}})});
      },
      "old_vocab"_a, "new_vocab"_a, "oov"_a = "first",
      "Rows that follow their value from one vocabulary into another, for RestoreOptions(rows=).\n"
      "\n>>> cairn.rows_by_value([\"a\", \"b\"], [\"b\", \"c\", \"a\"])\n[0, 3, 1]");
}

void bind_restore_status(nb::module_& m) {
  using Differences = RestoreDifferences;
  FieldsOf<Differences> fields(m, "RestoreDifferences", "What of a restore has not matched.");
  fields.add("not_saved", &Differences::not_saved, "The program's, at their initial values.")
      .add("not_used", &Differences::not_used, "The checkpoint's: the program has none such.")
      .add("other_type", &Differences::other_type, "Their dtype or shape differs.")
      .add("other_slots", &Differences::other_slots, "Their optimizer's slots are not saved.")
      .add("unused_slots", &Differences::unused_slots, "They have no optimizer yet.")
      .add("renamed_onto_nothing", &Differences::renamed_onto_nothing,
           "`rename` names a variable that the program has not made.")
      .report()
      .def_prop_ro("none", &Differences::none, "Whether all has matched.")
      .def_prop_ro("existing_match", &Differences::existing_match,
                   "Whether all that the program has made comes from the checkpoint.")
      .def("text", &Differences::text, "A line for each kind that is not empty.");
  nb::class_<Restored>(m, "RestoreStatus", "What a restore has matched and what it has not.")
      .def(
          "assert_consumed",
          [](nb::handle_t<Restored> self) {
            nb::cast<Restored&>(self).get().assert_consumed();
            return nb::borrow(self);
          },
          nb::sig("def assert_consumed(self) -> RestoreStatus"),
          "Every variable and slot must match. Ask once all variables have been made.")
      .def(
          "assert_existing_objects_matched",
          [](nb::handle_t<Restored> self) {
            nb::cast<Restored&>(self).get().assert_existing_objects_matched();
            return nb::borrow(self);
          },
          nb::sig("def assert_existing_objects_matched(self) -> RestoreStatus"),
          "The same; the checkpoint may hold more.")
      .def(
          "expect_partial",
          [](nb::handle_t<Restored> self) {
            nb::cast<Restored&>(self).get().expect_partial();
            return nb::borrow(self);
          },
          nb::sig("def expect_partial(self) -> RestoreStatus"),
          "What does not match begins at its initial values, without a warning.")
      .def(
          "differences", [](Restored& of) { return of.get().differences(); },
          "What has not matched so far.")
      .def(
          "plan", [](Restored& of) { return of.get().plan(); },
          "What comes from where, a line for each variable made so far.");
}

// A strategy's state, or that of the one in scope.
struct Saved {
  StrategyObject strategy;
};

void bind_checkpoint(nb::module_& m) {
  nb::class_<Saved>(m, "Checkpoint", R"(Saves and restores what a strategy holds.

>>> import tempfile
>>> strategy = cairn.OneDeviceStrategy()
>>> with strategy.scope():
...     v = cairn.Variable([1.0], name="v")
>>> path = cairn.Checkpoint(strategy).save(tempfile.mkdtemp())
>>> v.assign([2.0])
>>> _ = cairn.Checkpoint(strategy).restore(path).assert_consumed()
>>> v.numpy()
array([1.], dtype=float32))")
      .def(
          "__init__",
          [](Saved* self, const StrategyObject* strategy) {
            SharedOwner owner =
                strategy != nullptr ? SharedOwner(*strategy) : owner_of(current_variable_creator());
            if (owner == nullptr)
              throw FailedPreconditionError(
                  "Checkpoint(): no strategy's scope is open: pass a strategy");
            new (self) Saved{StrategyObject(std::move(owner))};
          },
          "strategy"_a = nb::none())
      .def(
          "save",
          [](const Saved& of, const std::string& folder) {
            return save_by(of.strategy, nb::cast(folder), "{}");
          },
          "folder"_a, "A new checkpoint below the folder; its own folder.")
      .def(
          "restore",
          [](const Saved& of, const std::string& checkpoint, nb::handle options) {
            return restore_by(of.strategy, checkpoint, options);
          },
          "checkpoint"_a, "options"_a = nb::none(), nb::sig(kRestoreSignature));
}

}  // namespace

CheckpointPolicy policy_of(nb::handle given) {
  if (nb::isinstance<CheckpointPolicy>(given)) return nb::cast<const CheckpointPolicy&>(given);
  const nb::object path = nb::module_::import_("os").attr("fspath")(given);
  return {.folder = nb::cast<std::string>(path)};
}

RestoreOptions restore_options_of(nb::handle given) {
  if (given.is_none()) return {};
  if (!nb::isinstance<RestoreOptions>(given))
    throw nb::type_error("restore: `options` are cairn.RestoreOptions");
  return nb::cast<const RestoreOptions&>(given);
}

std::string save_by(const StrategyObject& of, nb::handle policy, const std::string& metadata) {
  Strategy& strategy = of->strategy();
  const CheckpointPolicy wanted = policy_of(policy);
  return released([&] { return strategy.save(wanted, metadata); });
}

Restored restore_by(const StrategyObject& of, const std::string& checkpoint, nb::handle options) {
  Strategy& strategy = of->strategy();
  const RestoreOptions wanted = restore_options_of(options);
  return {released([&] { return strategy.restore(checkpoint, wanted); }), of};
}

void bind_checkpoint_options(nb::module_& m) {
  bind_row_encoding(m);
  bind_checkpoint_policy(m);
  bind_restore_options(m);
  bind_restore_status(m);
  bind_checkpoint(m);
}

}  // namespace cairn::python
