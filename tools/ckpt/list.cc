// ls, show and verify: from the manifests, and verify from every byte.
#include <cstdio>
#include <set>

#include "core/disk/disk.h"
#include "storage/any_disk.h"
#include "storage/checkpoint_folder.h"
#include "storage/manifest.h"
#include "tools/ckpt/commands.h"
#include "tools/job/train/checkpoint_path.h"

namespace cairn::tools::ckpt {
namespace {

using storage::Manifest;

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
  return str(", a delta of ", manifest.base, " with ", megabytes(own_bytes_of(manifest)),
             " of its own");
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

// ", rows in local folders of 2 ps"; nothing where all are in the checkpoint's folder.
std::string places_text(const Manifest& manifest) {
  std::set<std::string> tasks;
  for (const auto& database : manifest.databases)
    if (!database.task.empty()) tasks.insert(database.task);
  return tasks.empty() ? "" : str(", rows in local folders of ", tasks.size(), " ps");
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
    std::printf("    %-40s %llu rows, %zu files, %s%s\n", database.name.c_str(),
                static_cast<unsigned long long>(database.rows), database.files.size(),
                megabytes(database.bytes).c_str(),
                database.task.empty() ? "" : (" on the machine of " + database.task).c_str());
  std::printf("  datasets\n");
  for (const auto& position : manifest.datasets)
    std::printf("    %-40s next element %llu\n", position.pipeline.c_str(),
                static_cast<unsigned long long>(position.ordinal));
}

}  // namespace

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
    std::printf("%s  step %-9lld %s  %zu variables, %zu databases, %s%s\n", path.c_str(),
                static_cast<long long>(manifest.global_step),
                time_text(manifest.saved_at_us).c_str(), manifest.variables.size(),
                manifest.databases.size(), megabytes(bytes_of(manifest)).c_str(),
                (delta_text(manifest) + places_text(manifest)).c_str());
  }
  if (form == Form::kJson) print_json(all);
  return kFine;
}

// JSON shows the manifest as it is stored, so that nothing of it is hidden from a script.
int show(const std::string& given, Form form) {
  const std::string path = checkpoint_at(given);
  const Manifest manifest = storage::read_manifest(storage::any_disk(), path);
  if (form == Form::kJson)
    print_json({{"path", path}, {"manifest", parse_json(storage::to_text(manifest), path)}});
  else
    print(path, manifest);
  return kFine;
}

// A checkpoint that a training removes meanwhile was not found to be damaged: it is reported as
// removed, and the others are verified all the same.
int verify(const VerifyRequest& request) {
  const Form form = request.form;
  const storage::DatabaseFolders folders(request.folders);
  const auto store = storage::make_rocks_row_store();
  bool clean = true;
  Json all = Json::array();
  const std::vector<std::string> paths = checkpoints_at(request.path);
  for (const auto& path : paths) {
    const storage::VerifyReport report =
        storage::verify(storage::any_disk(), *store, path, folders);
    const bool removed = !report.clean() && !is_checkpoint(path);
    clean &= report.clean() || removed;
    if (form == Form::kJson) {
      all.push_back({{"path", path},
                     {"clean", report.clean()},
                     {"removed", removed},
                     {"files", report.files},
                     {"blocks", report.blocks},
                     {"rows", report.rows},
                     {"bytes", report.bytes},
                     {"elsewhere", report.elsewhere},
                     {"problems", removed ? std::vector<std::string>{} : report.problems}});
      continue;
    }
    std::printf("%s: %s (%llu files, %llu blocks, %llu rows, %s)\n", path.c_str(),
                removed                   ? "removed while it was read"
                : report.clean()          ? "clean"
                : report.problems.empty() ? "NOT WHOLE HERE"
                                          : "DAMAGED",
                static_cast<unsigned long long>(report.files),
                static_cast<unsigned long long>(report.blocks),
                static_cast<unsigned long long>(report.rows), megabytes(report.bytes).c_str());
    if (report.clean() || removed) continue;
    for (const auto& problem : report.problems) std::printf("  %s\n", problem.c_str());
    for (const auto& database : report.elsewhere) std::printf("  %s\n", database.c_str());
    // All checkpoints of a folder are looked at, and each says by itself whether it is sound.
    if (paths.size() > 1 || !report.elsewhere.empty()) continue;
    const std::string sound =
        storage::newest_sound_before(storage::any_disk(), *store, path, folders);
    std::printf("  %s\n", sound.empty() ? "no older one beside it is sound"
                                        : ("the newest older one that is sound: " + sound).c_str());
  }
  if (form == Form::kJson) print_json(all);
  return clean ? kFine : kFound;
}

}  // namespace cairn::tools::ckpt
