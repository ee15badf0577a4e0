// Feature columns, and what is fitted for them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "data.h"
#include "data/feature/feature_column.h"
#include "data/stage/fit.h"
#include "fields.h"
#include "values.h"

namespace cairn::python {

std::vector<FeatureColumn> feature_columns_of(nb::handle columns) {
  if (nb::isinstance<FeatureColumn>(columns)) return {nb::cast<FeatureColumn>(columns)};
  std::vector<FeatureColumn> all;
  for (nb::handle each : nb::iter(columns)) all.push_back(nb::cast<FeatureColumn>(each));
  return all;
}

namespace {

const char* kind_name(FeatureColumn::Kind kind) {
  using Kind = FeatureColumn::Kind;
  switch (kind) {
    case Kind::kNumeric: return "numeric";
    case Kind::kVocabulary: return "vocabulary";
    case Kind::kHashed: return "hashed";
    case Kind::kBucketised: return "bucketised";
    case Kind::kCrossed: return "crossed";
    case Kind::kAsIs: return "as_is";
    case Kind::kWords: return "words";
    case Kind::kDatePart: return "date_part";
  }
  return "";
}

// Names of columns, or NumericInputs; one, or several.
std::vector<NumericInput> numeric_inputs_of(nb::handle inputs) {
  const auto one = [](nb::handle each) -> NumericInput {
    if (nb::isinstance<NumericInput>(each)) return nb::cast<NumericInput>(each);
    return {.column = nb::cast<std::string>(each)};
  };
  if (nb::isinstance<nb::str>(inputs) || nb::isinstance<NumericInput>(inputs)) return {one(inputs)};
  std::vector<NumericInput> all;
  for (nb::handle each : nb::iter(inputs)) all.push_back(one(each));
  return all;
}

Oov oov_of(const std::string& word) {
  return chosen<Oov>("oov", word, {{"first", Oov::kFirst}, {"last", Oov::kLast}});
}

const char* part_name(DatePart part) {
  switch (part) {
    case DatePart::kDayOfWeek: return "day_of_week";
    case DatePart::kHour: return "hour";
    case DatePart::kMonth: return "month";
  }
  return "";
}

// For pickle and copy.deepcopy(): cairn.data makes it again by the function of its kind.
nb::object reduced(const FeatureColumn& of) {
  using Kind = FeatureColumn::Kind;
  nb::dict by;
  by["name"] = of.name;
  if (of.kind == Kind::kNumeric) {
    by["inputs"] = of.numerics;
  } else if (of.kind == Kind::kCrossed) {
    by["columns"] = of.inputs;
  } else {
    by["column"] = of.inputs.at(0);
  }
  if (of.kind == Kind::kHashed || of.kind == Kind::kCrossed || of.kind == Kind::kWords)
    by["buckets"] = of.buckets;
  if (of.kind == Kind::kBucketised) by["boundaries"] = of.boundaries;
  if (of.kind == Kind::kDatePart) by["part"] = part_name(of.part);
  if (of.kind == Kind::kVocabulary) {
    by["values"] = of.values;
    by["oov"] = of.oov == Oov::kFirst ? "first" : "last";
  }
  if (of.kind == Kind::kAsIs) {
    by["ids"] = of.buckets;
    by["padding"] = of.padding;
  }
  if (of.kind == Kind::kWords) {
    by["words_max"] = of.ngrams.words_max;
    by["characters_min"] = of.ngrams.characters_min;
    by["characters_max"] = of.ngrams.characters_max;
    by["keep_case"] = of.ngrams.keep_case;
  }
  return nb::make_tuple(nb::module_::import_("cairn.data").attr("_feature_column"),
                        nb::make_tuple(kind_name(of.kind), by));
}

void bind_numeric_input(nb::module_& m) {
  nb::class_<NumericInput>(m, "NumericInput",
                           R"(One input of a numeric feature: (x - mean) / stddev.

>>> cairn.NumericInput("age", mean=40, stddev=12, log1p=False)
<cairn.NumericInput "age" mean 40 stddev 12>)")
      .def(
          "__init__",
          [](NumericInput* made, std::string column, float mean, float stddev, bool log1p,
             std::optional<std::int64_t> days_until) {
            new (made) NumericInput{std::move(column), mean, stddev, log1p, days_until};
          },
          "column"_a, "mean"_a = 0.0f, "stddev"_a = 1.0f, "log1p"_a = false,
          "days_until"_a = nb::none(),
          "`log1p` takes sign(x) log(1 + |x|) of x first; with `days_until`, seconds since 1970, x "
          "is the age of a date in days.")
      .def_rw("column", &NumericInput::column)
      .def_rw("mean", &NumericInput::mean)
      .def_rw("stddev", &NumericInput::stddev)
      .def_rw("log1p", &NumericInput::log1p)
      .def_rw("days_until", &NumericInput::days_until)
      .def(
          "__reduce__",
          [](nb::handle_t<NumericInput> self) {
            const auto& of = nb::cast<const NumericInput&>(self);
            return nb::make_tuple(
                nb::handle(self.type()),
                nb::make_tuple(of.column, of.mean, of.stddev, of.log1p, of.days_until));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
      .def(
          "__eq__", [](const NumericInput& a, const NumericInput& b) { return a == b; },
          nb::is_operator(), "other"_a, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](const NumericInput& of) {
        return str("<cairn.NumericInput \"", of.column, "\" mean ", of.mean, " stddev ", of.stddev,
                   ">");
      });
}

void bind_numbers_and_texts(nb::class_<FeatureColumn>& feature) {
  feature
      .def_static(
          "numeric",
          [](nb::handle inputs, std::string name) {
            return FeatureColumn::numeric(numeric_inputs_of(inputs), std::move(name));
          },
          "inputs"_a, "name"_a = "numeric",
          nb::sig("def numeric(inputs: str | NumericInput | collections.abc.Sequence[str | "
                  "NumericInput], name: str = 'numeric') -> FeatureColumn"),
          "float32, the inputs side by side: names of columns, or NumericInputs.\n\n"
          ">>> cairn.FeatureColumn.numeric([\"age\", cairn.NumericInput(\"hours\", mean=40, "
          "stddev=12)]).width\n"
          "2")
      .def_static(
          "vocabulary",
          [](std::string column, std::vector<std::string> values, const std::string& oov,
             std::string name) {
            return FeatureColumn::vocabulary(std::move(column), std::move(values), oov_of(oov),
                                             std::move(name));
          },
          "column"_a, "values"_a, "oov"_a = "first", "name"_a = "",
          "The place of a text or whole number among `values`; what is not there has the id before "
          "all (oov \"first\") or behind (\"last\").\n\n"
          ">>> cairn.FeatureColumn.vocabulary(\"city\", [\"Ulm\", \"Bonn\"]).ids\n"
          "3")
      .def_static("hashed", &FeatureColumn::hashed, "column"_a, "buckets"_a, "name"_a = "",
                  "An id in [0, buckets), by a hash of a text or whole number.\n\n"
                  ">>> cairn.FeatureColumn.hashed(\"city\", 1000)\n"
                  "<cairn.FeatureColumn hashed \"city\", 1000 ids>")
      .def_static("bucketised", &FeatureColumn::bucketised, "column"_a, "boundaries"_a,
                  "name"_a = "",
                  "How many of the ascending boundaries are <= x.\n\n"
                  ">>> cairn.FeatureColumn.bucketised(\"age\", [18, 65]).name\n"
                  "'age_bucket'");
}

void bind_ids_and_words(nb::class_<FeatureColumn>& feature) {
  feature
      .def_static("crossed", &FeatureColumn::crossed, "columns"_a, "buckets"_a, "name"_a = "",
                  "An id in [0, buckets), by a hash of several columns together.\n\n"
                  ">>> cairn.FeatureColumn.crossed([\"city\", \"job\"], 1000).name\n"
                  "'city_x_job'")
      .def_static(
          "as_is", &FeatureColumn::as_is, "column"_a, "ids"_a = 0, "name"_a = "",
          "padding"_a = nb::none(),
          "The column unchanged; with `padding`, ragged, without the values equal to it.\n\n"
          ">>> cairn.FeatureColumn.as_is(\"ids\", 100, padding=-1).padding\n"
          "-1")
      .def_static(
          "words",
          [](std::string column, std::int64_t buckets, std::string name, std::int64_t words_max,
             std::int64_t characters_min, std::int64_t characters_max, bool keep_case) {
            return FeatureColumn::words(std::move(column), buckets,
                                        {words_max, characters_min, characters_max, keep_case},
                                        std::move(name));
          },
          "column"_a, "buckets"_a, "name"_a = "", nb::kw_only(), "words_max"_a = 1,
          "characters_min"_a = 0, "characters_max"_a = 0, "keep_case"_a = false,
          "Ragged ids in [0, buckets) of a text's words, and of its n-grams of words and "
          "characters.\n\n"
          ">>> cairn.FeatureColumn.words(\"title\", 5000, words_max=2).kind\n"
          "'words'")
      .def_static(
          "date_part",
          [](std::string column, const std::string& part, std::string name) {
            return FeatureColumn::date_part(std::move(column),
                                            chosen<DatePart>("a part of a date", part,
                                                             {{"day_of_week", DatePart::kDayOfWeek},
                                                              {"hour", DatePart::kHour},
                                                              {"month", DatePart::kMonth}}),
                                            std::move(name));
          },
          "column"_a, "part"_a, "name"_a = "",
          "\"day_of_week\", \"hour\" or \"month\" of int64 seconds since 1970.\n\n"
          ">>> cairn.FeatureColumn.date_part(\"at\", \"hour\").ids\n"
          "24");
}

void bind_feature_column(nb::module_& m) {
  nb::class_<FeatureColumn> feature(m, "FeatureColumn",
                                    R"(How a raw column becomes what a model reads: numbers, or ids.

>>> age = cairn.FeatureColumn.numeric("age")
>>> city = cairn.FeatureColumn.hashed("city", 1000)
>>> rows = {"age": np.array([31, 44]), "city": np.array(["Ulm", "Bonn"])}
>>> data = cairn.Dataset.from_tensor_slices(rows)
>>> [column.name for column in data.features([age, city]).element_spec]
['numeric', 'city']
>>> city.ids
1000)");
  bind_numbers_and_texts(feature);
  bind_ids_and_words(feature);
  feature.def_ro("name", &FeatureColumn::name, "The column that it makes.")
      .def_prop_ro(
          "kind", [](const FeatureColumn& of) { return std::string(kind_name(of.kind)); },
          "\"numeric\", \"vocabulary\" and so on: the function that made it.")
      .def_ro("inputs", &FeatureColumn::inputs, "The columns that it reads, unless it is numeric.")
      .def_ro("numerics", &FeatureColumn::numerics, "The inputs of a numeric one.")
      .def_ro("values", &FeatureColumn::values, "The vocabulary.")
      .def_ro("boundaries", &FeatureColumn::boundaries)
      .def_ro("padding", &FeatureColumn::padding)
      .def_ro("buckets", &FeatureColumn::buckets)
      .def_prop_ro("ids", &FeatureColumn::ids,
                   "How many ids there are: the rows of its embedding; 0: it is of numbers.")
      .def("__reduce__", &reduced, nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
      .def_prop_ro("width", &FeatureColumn::width, "How many numbers wide it is.")
      .def(
          "__eq__", [](const FeatureColumn& a, const FeatureColumn& b) { return a == b; },
          nb::is_operator(), "other"_a, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](const FeatureColumn& of) {
        return str("<cairn.FeatureColumn ", kind_name(of.kind), " \"", of.name, "\"",
                   of.ids() > 0 ? str(", ", of.ids(), " ids") : "", ">");
      });
}

void bind_fit(nb::module_& m) {
  FieldsOf<LinesRead>(m, "LinesRead", "What reading met beside the data.")
      .add("skipped", &LinesRead::skipped, "Lines that were left out (on_error=\"skip\").")
      .add("first_skipped", &LinesRead::first_skipped, "Why, of the first of them.")
      .add("empty_files", &LinesRead::empty_files, "Files without a row.")
      .add("filtered", &LinesRead::filtered, "Rows left out by conditions.")
      .add("unlabelled", &LinesRead::unlabelled, "Rows left out for their label.")
      .report();
  FieldsOf<AgeRequest>(m, "AgeRequest", R"(The age of a column's dates, in days.

>>> cairn.AgeRequest(column="born").column
'born')")
      .add("column", &AgeRequest::column, "Seconds since 1970.")
      .add("until", &AgeRequest::until, "The date that it is counted to; None: the latest.")
      .options();
  FieldsOf<Fit>(m, "Fit", "What fit() has found.")
      .add("vocabularies", &Fit::vocabularies, "The most frequent values first, by column.")
      .add("examples", &Fit::examples, "How many there are.")
      .report()
      .def_ro("numeric", &Fit::numeric, "The inputs with their means and deviations.")
      .def_ro("ages", &Fit::ages, "The same of the ages.")
      .def_ro("lines", &Fit::lines, "What reading met.");
  m.def(
      "fit",
      [](const Dataset& dataset, nb::handle numeric, std::vector<std::string> vocabularies,
         std::vector<AgeRequest> ages, std::int64_t min_count, std::int64_t max_size) {
        const FitRequest request{.numeric = numeric_inputs_of(numeric),
                                 .vocabularies = std::move(vocabularies),
                                 .vocabulary_options = {min_count, max_size},
                                 .ages = std::move(ages)};
        return released([&] { return fit(dataset, request); });
      },
      "dataset"_a, "numeric"_a = nb::tuple(), "vocabularies"_a = std::vector<std::string>{},
      nb::kw_only(), "ages"_a = std::vector<AgeRequest>{}, "min_count"_a = 1,
      "max_size"_a = 1 << 20,
      nb::sig("def fit(dataset: Dataset, numeric: str | NumericInput | "
              "collections.abc.Sequence[str | NumericInput] = (), vocabularies: "
              "collections.abc.Sequence[str] = (), *, ages: "
              "collections.abc.Sequence[AgeRequest] = (), min_count: int = 1, max_size: int = "
              "1048576) -> Fit"),
      "Reads the data once, and gives what feature columns need: means and deviations, "
      "vocabularies, ages of dates.\n\n"
      ">>> rows = {\"x\": np.array([1.0, 3.0]), \"city\": np.array([\"Ulm\", \"Ulm\"])}\n"
      ">>> found = cairn.fit(cairn.Dataset.from_tensor_slices(rows), [\"x\"], [\"city\"])\n"
      ">>> found.numeric[0].mean, found.vocabularies\n"
      "(2.0, [['Ulm']])");
}

}  // namespace

void bind_features(nb::module_& m) {
  bind_numeric_input(m);
  bind_feature_column(m);
  bind_fit(m);
  m.def(
      "fit_numeric",
      [](const Dataset& data, nb::handle columns) {
        const std::vector<NumericInput> inputs = numeric_inputs_of(columns);
        return released([&] { return fit_numeric(data, inputs); });
      },
      "dataset"_a, "columns"_a,
      nb::sig("def fit_numeric(dataset: Dataset, columns: str | NumericInput | "
              "collections.abc.Sequence[str | NumericInput]) -> list[NumericInput]"),
      "Reads the data once, and gives the inputs with their means and deviations.\n\n"
      ">>> data = cairn.Dataset.from_tensor_slices({\"x\": np.array([1.0, 3.0])})\n"
      ">>> cairn.fit_numeric(data, [\"x\"])\n"
      "[<cairn.NumericInput \"x\" mean 2 stddev 1>]");
  m.def(
      "fit_vocabulary",
      [](const Dataset& data, const std::string& column, std::int64_t min_count,
         std::int64_t max_size) {
        return released([&] { return fit_vocabulary(data, column, {min_count, max_size}); });
      },
      "dataset"_a, "column"_a, "min_count"_a = 1, "max_size"_a = 1 << 20,
      "Reads the data once, and gives the most frequent values, the most frequent first.\n\n"
      ">>> data = cairn.Dataset.from_tensor_slices({\"x\": np.array([\"a\", \"b\", \"b\"])})\n"
      ">>> cairn.fit_vocabulary(data, \"x\")\n"
      "['b', 'a']");
}

}  // namespace cairn::python
