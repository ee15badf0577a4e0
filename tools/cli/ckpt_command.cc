// Looking at checkpoints without a cluster: everything is read from the folder, so that these work
// while a run saves there and after it has died.
#include "tools/cli/ckpt_command.h"

#include <CLI/CLI.hpp>
#include <ctime>
#include <memory>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/disk/disk.h"
#include "storage/any_disk.h"
#include "storage/checkpoint_folder.h"
#include "storage/manifest.h"
#include "tools/cli/run_address.h"
#include "tools/job/train/checkpoint_path.h"

namespace cairn::tools {
namespace {

using storage::Manifest;

std::string time_text(std::int64_t microseconds) {
  std::time_t seconds = microseconds / 1'000'000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%SZ", &parts)};
}

std::uint64_t bytes_of(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const auto& database : manifest.databases) bytes += database.bytes;
  return bytes;
}

// Without the databases that a delta has from the checkpoints before it.
std::uint64_t own_bytes_of(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const auto& database : manifest.databases)
    if (storage::is_own(manifest, database)) bytes += database.bytes;
  return bytes;
}

// ", a delta of ckpt-00000041 with 1.20 MB of its own"; nothing of a full one.
std::string delta_text(const Manifest& manifest) {
  if (manifest.base.empty()) return "";
  char megabytes[32];
  std::snprintf(megabytes, sizeof megabytes, "%.2f",
                static_cast<double>(own_bytes_of(manifest)) / 1e6);
  return str(", a delta of ", manifest.base, " with ", megabytes, " MB of its own");
}

enum class Form { kText, kJson };

// Every subcommand has --json, for scripts.
void print_json(const Json& json) { std::printf("%s\n", json_text(json, 2).c_str()); }

// A manifest that cannot be read ends the listing with its error: a listing that passed over it
// would look complete.
int list(const std::string& folder, Form form) {
  Json all = Json::array();
  for (const std::string& path : checkpoints_at(folder)) {
    const Manifest manifest = storage::read_manifest(storage::any_disk(), path);
    if (form == Form::kJson) {
      all.push_back({{"path", path},
                     {"global_step", manifest.global_step},
                     {"saved_at", time_text(manifest.saved_at_us)},
                     {"variables", manifest.variables.size()},
                     {"databases", manifest.databases.size()},
                     {"bytes", bytes_of(manifest)},
                     {"own_bytes", own_bytes_of(manifest)},
                     {"base", manifest.base}});
      continue;
    }
    std::printf("%s  step %-9lld %s  %zu variables, %zu databases, %.2f MB%s\n", path.c_str(),
                static_cast<long long>(manifest.global_step),
                time_text(manifest.saved_at_us).c_str(), manifest.variables.size(),
                manifest.databases.size(), static_cast<double>(bytes_of(manifest)) / 1e6,
                delta_text(manifest).c_str());
  }
  if (form == Form::kJson) print_json(all);
  return 0;
}

// ", rows as bf16, slots dropped"; nothing of an exact one.
std::string form_text(const storage::VariableInfo& variable) {
  std::string text;
  if (variable.row_form != storage::RowForm::kExact)
    text = str(", rows as ", storage::form_name(variable.row_form));
  if (variable.slot_form == storage::SlotForm::kDropped)
    text += ", slots dropped";
  else if (variable.slot_form != storage::SlotForm::kExact)
    text += str(", slots as ", storage::form_name(variable.slot_form));
  return text;
}

void print(const std::string& path, const Manifest& manifest) {
  std::printf("%s\n  step %lld, saved %s, session %llu%s%s\n", path.c_str(),
              static_cast<long long>(manifest.global_step), time_text(manifest.saved_at_us).c_str(),
              static_cast<unsigned long long>(manifest.session), delta_text(manifest).c_str(),
              manifest.compression == storage::Compression::kNone ? "" : ", zstd");
  std::printf("  variables\n");
  for (const auto& variable : manifest.variables) {
    std::string slots;
    for (const auto& slot : variable.slots) slots += (slots.empty() ? ", slots " : ", ") + slot;
    std::printf("    %-40s %-20s %s%s, %zu part%s%s%s\n", variable.name.c_str(),
                TensorType{variable.dtype, variable.shape}.to_string().c_str(),
                std::string(rule_name(variable.rule)).c_str(), slots.c_str(), variable.parts.size(),
                variable.parts.size() == 1 ? "" : "s", variable.hashed ? ", hashed" : "",
                form_text(variable).c_str());
  }
  std::printf("  databases\n");
  for (const auto& database : manifest.databases)
    std::printf("    %-40s %llu rows, %zu files, %.2f MB\n", database.name.c_str(),
                static_cast<unsigned long long>(database.rows), database.files.size(),
                static_cast<double>(database.bytes) / 1e6);
  std::printf("  datasets\n");
  for (const auto& position : manifest.datasets)
    std::printf("    %-40s next element %llu\n", position.pipeline.c_str(),
                static_cast<unsigned long long>(position.ordinal));
}

// JSON shows the manifest as it is stored, so that nothing of it is hidden from a script.
int show(const std::string& given, Form form) {
  const std::string path = checkpoint_at(given);
  const Manifest manifest = storage::read_manifest(storage::any_disk(), path);
  if (form == Form::kJson)
    print_json({{"path", path}, {"manifest", parse_json(storage::to_text(manifest), path)}});
  else
    print(path, manifest);
  return 0;
}

// The exit status is 1 if any checkpoint is damaged, for scripts.
int verify(const std::string& given, Form form) {
  auto store = storage::make_rocks_row_store();
  bool clean = true;
  Json all = Json::array();
  const std::vector<std::string> paths = checkpoints_at(given);
  for (const auto& path : paths) {
    const storage::VerifyReport report = storage::verify(storage::any_disk(), *store, path);
    clean &= report.clean();
    if (form == Form::kJson) {
      all.push_back({{"path", path},
                     {"clean", report.clean()},
                     {"files", report.files},
                     {"blocks", report.blocks},
                     {"rows", report.rows},
                     {"bytes", report.bytes},
                     {"problems", report.problems}});
      continue;
    }
    std::printf("%s: %s (%llu files, %llu blocks, %llu rows, %.2f MB)\n", path.c_str(),
                report.clean() ? "clean" : "DAMAGED", static_cast<unsigned long long>(report.files),
                static_cast<unsigned long long>(report.blocks),
                static_cast<unsigned long long>(report.rows),
                static_cast<double>(report.bytes) / 1e6);
    for (const auto& problem : report.problems) std::printf("  %s\n", problem.c_str());
    // All checkpoints of a folder are looked at, and each says by itself whether it is sound.
    if (report.clean() || paths.size() > 1) continue;
    const std::string sound = storage::newest_sound_before(storage::any_disk(), *store, path);
    std::printf("  %s\n", sound.empty() ? "no older one beside it is sound"
                                        : ("the newest older one that is sound: " + sound).c_str());
  }
  if (form == Form::kJson) print_json(all);
  return clean ? 0 : 1;
}

using Run = int (*)(const std::string& path, Form form);

// ls, show and verify take the same arguments. What the callbacks need is shared with CLI's
// objects, which outlive this function.
void add(CLI::App& parent, const std::string& name, const std::string& what,
         const std::string& path_is, Run run, int& status) {
  auto path = std::make_shared<std::string>("checkpoints");
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = parent.add_subcommand(name, what);
  command->add_option("path", *path, path_is)->capture_default_str();
  command->add_flag("--json", *as_json, "As JSON");
  command->callback(
      [path, as_json, run, &status] { status = run(*path, *as_json ? Form::kJson : Form::kText); });
}

struct SaveRequest {
  RunChoice run;
  double wait_seconds = 600;
};

// Asks the running coordinator, which alone can make a cut; the answer comes when the checkpoint
// exists.
int save(const SaveRequest& request) {
  const RunAddress run = find_running(request.run);
  require_coordinator(run, "it saves as its job says; `cairn stop` ends it with a checkpoint");
  const auto limit =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(request.wait_seconds));
  std::printf("%s\n", ask_save(run.coordinator, limit).c_str());
  return 0;
}

// Unlike its neighbours this one needs a running coordinator, hence other flags.
void add_save(CLI::App& parent, int& status) {
  auto request = std::make_shared<SaveRequest>();
  CLI::App* command = parent.add_subcommand(
      "save", "Have a running training save a checkpoint now, and print its folder");
  add_run_flags(*command, request->run);
  command->add_option("--wait", request->wait_seconds, "Seconds to wait for it")
      ->capture_default_str();
  command->callback([request, &status] { status = save(*request); });
}

}  // namespace

void add_ckpt_command(CLI::App& app, int& status) {
  CLI::App* ckpt = app.add_subcommand("ckpt", "Look at checkpoints, and ask for one");
  ckpt->require_subcommand(1);
  add(*ckpt, "ls", "List the checkpoints of a folder", "A folder of checkpoints, or a run's", list,
      status);
  add(*ckpt, "show", "Show what a checkpoint holds",
      "A checkpoint, or a folder of them or of a run: the newest", show, status);
  add(*ckpt, "verify", "Read every byte and compare it with the manifest",
      "A checkpoint, or a folder of them or of a run: all of them", verify, status);
  add_save(*ckpt, status);
}

}  // namespace cairn::tools
