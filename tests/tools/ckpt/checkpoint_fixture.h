// Checkpoints on disk for the tests of `cairn ckpt`, and the command itself, as a shell sees it.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/disk/disk.h"
#include "storage/checkpoint_folder.h"
#include "storage/checkpoint_writer.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"

namespace cairn::tools::ckpt {

// Row r of a variable has the parameters r + 0.25 * column, and 10 * r as each slot.
inline float parameter(std::int64_t row, std::int64_t column) {
  return static_cast<float>(row) + 0.25f * static_cast<float>(column);
}

inline storage::VariableInfo dense_variable() {
  return {.name = "dense/kernel",
          .shape = Shape{40, 3},
          .rule = {RuleKind::kAdagrad, {0.1f, 1e-7f}},
          .slots = {"accumulator"},
          .parts = {{0, 40}}};
}
inline storage::VariableInfo hashed_variable() {
  storage::VariableInfo variable = dense_variable();
  variable.name = "hashed";
  variable.shape = Shape{std::int64_t{1} << 40, 3};
  variable.parts = {{0, std::int64_t{1} << 40}};
  variable.hashed = true;
  return variable;
}

using Change = std::function<void(const std::string& variable, std::int64_t row, float* values)>;

inline void add_rows(storage::CheckpointWriter& writer, const storage::VariableInfo& variable,
                     const std::vector<std::int64_t>& rows, const Change& change) {
  storage::RowBatch batch;
  for (const std::int64_t row : rows) {
    float values[6];
    for (int i = 0; i < 3; ++i) values[i] = parameter(row, i);
    for (int i = 3; i < 6; ++i) values[i] = 10.0f * static_cast<float>(row);
    if (change) change(variable.name, row, values);
    batch.rows.push_back(row);
    batch.data.resize(batch.rows.size() * sizeof values);
    std::memcpy(batch.data.data() + (batch.rows.size() - 1) * sizeof values, values, sizeof values);
  }
  writer.add(batch);
}

// The delta of a checkpoint as a training makes it: links to its base's files, then its own rows.
inline std::string make_delta(const std::string& base, const std::string& delta) {
  storage::Manifest manifest = storage::read_manifest(system_disk(), base);
  const std::string base_name = base.substr(base.rfind('/') + 1);
  for (auto& database : manifest.databases) {
    const std::string name = base_name + "." + database.name;
    std::vector<std::string> files;
    for (auto& file : database.files) {
      files.push_back(file.name.substr(file.name.find('/') + 1));
      file.name = name + "/" + files.back();
    }
    system_disk().link_files(base + "/" + database.name, delta + "/" + name, files);
    database.name = name;
  }
  const auto store = storage::make_rocks_row_store();
  storage::CheckpointWriter writer(*store, delta, {"ps-0-shard-0"});
  for (auto& variable : storage::in_key_order(manifest.variables)) {
    writer.begin(variable, 9);
    const Change twice = [](const std::string&, std::int64_t, float* values) { values[0] *= 2; };
    add_rows(writer, variable, {5}, twice);
  }
  manifest.databases.push_back(writer.finish().at(0));
  manifest.base = base_name;
  manifest.checkpoint =
      storage::CheckpointFolder::parse_name(delta.substr(delta.rfind('/') + 1)).value_or(2);
  storage::commit(system_disk(), delta, manifest);
  return delta;
}

struct Made {
  std::uint64_t id = 1, session = 5;
  std::vector<storage::Ancestor> ancestors = {};
  std::vector<std::int64_t> ids = {3, 70, 1'000'000'007};
  Change change = nullptr;
  std::int64_t saved_at_us = 1'700'000'000'000'000;
  std::size_t dense_rows = 40;
};

class CkptTest : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }

  // The folder of a checkpoint with one dense and one hashed variable.
  std::string make(const Made& made = {}, const std::string& folder = "checkpoints") {
    const std::string path =
        file(folder) + "/" + storage::CheckpointFolder(system_disk(), "").name(made.id);
    system_disk().make_folder(path);
    const auto store = storage::make_rocks_row_store();
    storage::Manifest manifest{.checkpoint = made.id,
                               .global_step = static_cast<std::int64_t>(100 * made.id),
                               .saved_at_us = made.saved_at_us,
                               .session = made.session,
                               .ancestors = made.ancestors};
    storage::CheckpointWriter writer(*store, path, {"ps-0-shard-0", "ps-1-shard-0"});
    std::vector<std::int64_t> all;
    for (std::size_t row = 0; row < made.dense_rows; ++row)
      all.push_back(static_cast<std::int64_t>(row));
    manifest.variables = {dense_variable(), hashed_variable()};
    if (made.dense_rows > 40)
      manifest.variables[0].shape = Shape{static_cast<std::int64_t>(made.dense_rows), 3};
    for (auto& variable : storage::in_key_order(manifest.variables)) {
      auto& own = manifest.variables[variable.hashed ? 1 : 0];
      own.parts = writer.begin(variable, 7);
      add_rows(writer, variable, variable.hashed ? made.ids : all, made.change);
    }
    manifest.databases = writer.finish();
    storage::commit(system_disk(), path, manifest);
    return path;
  }

  // Runs `cairn ckpt ...` and returns its exit status.
  int ckpt(std::vector<std::string> arguments) {
    system_disk().remove(file("output"));
    arguments.insert(arguments.begin(), {CAIRN_PROGRAM, "ckpt"});
    ChildProcess child({.arguments = arguments, .output_file = file("output")});
    return end_in_time(child, 60'000, "cairn ckpt").shell_code();
  }
  std::string output() const { return folder_.read("output"); }
  Json json() const { return parse_json(output(), "the output"); }

  TempFolder folder_;
};

}  // namespace cairn::tools::ckpt
