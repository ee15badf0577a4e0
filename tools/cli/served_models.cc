#include "tools/cli/served_models.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "tools/cli/run_rows.h"

namespace cairn::tools {
namespace {

using serving::ModelToServe;

// The text before and behind the first '=', or none before it.
std::pair<std::string, std::string> named(const std::string& text) {
  const auto at = text.find('=');
  if (at == std::string::npos) return {"", text};
  return {text.substr(0, at), text.substr(at + 1)};
}

std::int64_t version_of(const std::string& text, const std::string& option) {
  std::int64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size())
    throw InvalidArgumentError(str(option, ": \"", text, "\" is no number of a version"));
  return version;
}

// A path without a name is served under the name of its last folder; of a run's "model" and of a
// checkpoint, under that of the run.
std::string name_of(const std::string& path) {
  std::filesystem::path folder = std::filesystem::weakly_canonical(path);
  if (folder.filename() == "model") folder = folder.parent_path();
  if (folder.parent_path().filename() == "checkpoints") folder = folder.parent_path().parent_path();
  return folder.filename().string();
}

ModelToServe& model_named(std::vector<ModelToServe>& models, const std::string& name,
                          const std::string& option) {
  if (name.empty() && models.size() == 1) return models.front();
  std::vector<std::string> names;
  for (ModelToServe& model : models) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  const std::string nearest = nearest_name(name, names);
  throw InvalidArgumentError(
      name.empty() ? str(option, " names no model, and there are several: write NAME=...")
                   : str(option, ": there is no model \"", name, "\"",
                         nearest.empty() ? "" : str("; did you mean \"", nearest, "\"?")));
}

// Finds the ps of `run`, which is looked for when it is asked: a run that is resumed has other
// processes.
RowsOfRun rows_function(const std::string& run, const ServedModels& wanted) {
  return [run, cluster = wanted.cluster, token_file = wanted.ps_token_file,
          rate = wanted.follow_rate] {
    RowStreamOptions options = rows_of_run(run, cluster, token_file);
    options.bytes_per_second = static_cast<std::size_t>(rate * (1 << 20));
    return options;
  };
}

// A run that is followed from cut to cut is served as any other run: each checkpoint is a cut.
void follow(std::vector<ModelToServe>& models, const std::string& text,
            const ServedModels& wanted) {
  const auto [name, run] = named(text);
  const RowsOfRun rows = rows_function(run, wanted);
  try {
    rows();  // so that a mistake is told now
  } catch (const UnavailableError&) {
    // A run that has not begun, or has ended, is waited for.
  }
  const bool is_folder = is_run_folder(run);
  const bool is_new = name.empty()
                          ? wanted.paths.empty()
                          : std::ranges::find(models, name, &ModelToServe::name) == models.end();
  if (is_new) {
    if (!is_folder)
      throw InvalidArgumentError(str("--follow ", text,
                                     ": addresses say nothing of the model: name ",
                                     "one, as in `cairn serve NAME=MODEL --follow ", text, '`'));
    models.push_back({.name = name.empty() ? name_of(run) : name, .path = run});
  }
  ModelToServe& model = is_new ? models.back() : model_named(models, name, "--follow");
  if (!wanted.consistent) {
    model.follow = rows;
    model.from_ps = wanted.from_ps;
    model.ps_patience = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double, std::milli>(wanted.ps_deadline_ms));
  } else if (!is_folder || model.path != run) {
    throw InvalidArgumentError(str("--consistent: the cuts of ", text, " are the checkpoints of a ",
                                   "run's folder: follow that, and name no other model"));
  }
}

}  // namespace

std::vector<ModelToServe> models_of(const ServedModels& wanted) {
  std::vector<ModelToServe> models;
  for (const std::string& text : wanted.paths) {
    auto [name, path] = named(text);
    models.push_back({.name = name.empty() ? name_of(path) : name, .path = path});
  }
  for (const auto& [given, flag] :
       {std::pair(wanted.consistent, "--consistent"), std::pair(wanted.from_ps, "--from-ps")})
    if (given && wanted.follow.empty())
      throw InvalidArgumentError(str(flag, " says how a run is followed: add --follow RUN"));
  if (wanted.consistent && wanted.from_ps)
    throw InvalidArgumentError(
        "--consistent and --from-ps: rows on the ps have no cuts; leave one out");
  for (const std::string& text : wanted.follow) follow(models, text, wanted);
  for (const std::string& text : wanted.pins) {
    const auto [name, version] = named(text);
    model_named(models, name, "--pin").pin = version_of(version, "--pin");
  }
  for (const std::string& text : wanted.labels) {
    const auto [label, version] = named(text);
    const auto colon = label.find(':');
    const std::string model = colon == std::string::npos ? "" : label.substr(0, colon);
    const std::string word = colon == std::string::npos ? label : label.substr(colon + 1);
    if (word.empty())
      throw InvalidArgumentError(str("--label ", text, ": write LABEL=VERSION, or ",
                                     "NAME:LABEL=VERSION where there are several models"));
    model_named(models, model, "--label").labels[word] = version_of(version, "--label");
  }
  for (const std::string& text : wanted.candidates) {
    const auto [name, file] = named(text);
    model_named(models, name, "--candidates").candidates = file;
  }
  return models;
}

void add_model_flags(CLI::App& command, ServedModels& models) {
  command.add_option("models", models.paths,
                     "[NAME=]PATH: a saved model, a folder of versions (1, 2, ...), a run of "
                     "`cairn train`, or one of its checkpoints. Newer versions take over while "
                     "it serves");
  command.add_option("--pin", models.pins,
                     "[NAME=]VERSION: serve this version, however many newer ones there are");
  command.add_option("--label", models.labels,
                     "[NAME:]LABEL=VERSION: serve this version, too, at .../labels/LABEL");
  command.add_option("--candidates", models.candidates,
                     "[NAME=]FILE: what a retrieval model recommends, an .npz or a file in the "
                     "form of its training data; by default candidates.npz in the model's folder");
  command.add_option("--follow", models.follow,
                     "[NAME=]RUN: serve the rows of this run as it changes them, within moments; "
                     "its folder, or the addresses of its ps as HOST:PORT,...");
  command
      .add_option("--follow-rate", models.follow_rate,
                  "MB a second that are taken of each ps that is followed")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_flag("--consistent", models.consistent,
                   "Follow from checkpoint to checkpoint, each of which is of one moment");
  command.add_flag("--from-ps", models.from_ps,
                   "Leave the tables of what is followed on its ps, and read rows as they are "
                   "wanted: for tables larger than this server");
  command
      .add_option(
          "--ps-deadline", models.ps_deadline_ms,
          "Milliseconds that a batch waits for such rows; late ones count as they were last")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--cluster-id", models.cluster, "With addresses to follow: the cluster's id")
      ->capture_default_str();
  command.add_option("--ps-token-file", models.ps_token_file,
                     "With addresses to follow: the file with the cluster's token; by default "
                     "CAIRN_TOKEN_FILE names it");
}

}  // namespace cairn::tools
