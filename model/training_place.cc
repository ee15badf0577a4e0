#include "model/training_place.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/disk/disk.h"
#include "model/fitted_columns.h"
#include "model/writers/json_number.h"
#include "storage/any_disk.h"
#include "storage/manifest.h"

namespace cairn {
namespace {

Json numbers(const std::vector<double>& values) {
  Json all = Json::array();
  for (const double value : values) all.push_back(number_json(value));
  return all;
}

std::vector<double> numbers_of(const Json& all) {
  std::vector<double> values;
  for (const Json& value : all) values.push_back(number_of(value));
  return values;
}

}  // namespace

std::string TrainingPlace::to_json() const {
  Json all_sums = Json::array(), logs = Json::object();
  for (const auto& each : sums) all_sums.push_back(numbers(each));
  for (const auto& [name, values] : history.history) logs[name] = numbers(values);
  return json_text({{"fit",
                     {{"epoch", epoch},
                      {"step", step},
                      {"batches", batches},
                      {"sums", std::move(all_sums)},
                      {"epochs", history.epoch},
                      {"history", std::move(logs)},
                      {"features", features},
                      {"data", data},
                      {"stopping", stopping},
                      {"callbacks", callbacks},
                      {"told", told},
                      {"began", began},
                      {"notes", notes},
                      {"pipelines", pipelines},
                      {"ended", ended}}}});
}

void TrainingPlace::verify(const TrainingPlace& saved, const std::string& where) const {
  std::string found;
  if (!features.empty()) found = first_difference(saved.features, features);
  if (found.empty() && !data.empty() && !saved.data.empty() && data != saved.data)
    found = "its files or arrays, columns, batches or options differ";
  if (found.empty()) return;
  throw FailedPreconditionError(
      str("fit: ", where, " is of other data: ", found,
          "; go on with the data and the feature columns that it was saved with, or begin anew in "
          "another folder"));
}

TrainingPlace TrainingPlace::of_checkpoint(const std::string& checkpoint) {
  const storage::Manifest manifest = storage::read_manifest(storage::any_disk(), checkpoint);
  return parse(manifest.metadata, "the checkpoint " + checkpoint);
}

TrainingPlace TrainingPlace::parse(const std::string& text, const std::string& where) {
  const Json all = parse_json(text, "what is noted in " + where);
  const auto refused = [&] {
    return FailedPreconditionError(
        str(where, " does not say where a fit() was when it was saved: another program has made ",
            "it; restore its variables with Checkpoint instead"));
  };
  if (!all.is_object() || !all.contains("fit")) throw refused();
  try {
    const Json& fit = all["fit"];
    TrainingPlace place;
    place.epoch = fit.at("epoch").get<std::int64_t>();
    place.step = fit.at("step").get<std::int64_t>();
    place.batches = fit.at("batches").get<std::int64_t>();
    for (const Json& sums : fit.at("sums")) place.sums.push_back(numbers_of(sums));
    place.history.epoch = fit.at("epochs").get<std::vector<std::int64_t>>();
    for (const auto& [name, values] : fit.at("history").items())
      place.history.history[name] = numbers_of(values);
    place.features = fit.value("features", Json::object());
    place.data = fit.value("data", "");
    place.stopping = fit.value("stopping", false);
    if (fit.contains("callbacks")) place.callbacks = fit["callbacks"];
    place.told = fit.value("told", place.step > 0);
    place.began = fit.value("began", std::int64_t{0});
    place.notes = fit.value("notes", std::int64_t{0});
    place.pipelines = fit.value("pipelines", std::int64_t{1});
    place.ended = fit.value("ended", false);
    return place;
  } catch (const Json::exception&) {
    throw refused();
  }
}

}  // namespace cairn
