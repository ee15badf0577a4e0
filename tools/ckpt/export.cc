// export: a checkpoint's variables as arrays in safetensors or npz.
//
// Rows are read twice: once to count them, since a file of arrays begins with, or depends on, the
// sizes of all of them, and once to write them. So whatever cannot be expressed is known before
// anything is written, and no array is ever held.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "core/disk/disk.h"
#include "storage/manifest.h"
#include "tools/ckpt/commands.h"
#include "tools/ckpt/format/array_file.h"
#include "tools/ckpt/format/manifest_arrays.h"
#include "tools/ckpt/opened_checkpoint.h"
#include "tools/job/train/checkpoint_path.h"

namespace cairn::tools::ckpt {
namespace {

using storage::RowFields;
using storage::VariableInfo;

struct Exported {
  VariableInfo variable;
  RowFields form;
  bool by_keys = false;
  std::uint64_t rows = 0;       // that the arrays have
  std::size_t first_array = 0;  // its keys, if it has any, then its fields
};

// An array and where it goes.
struct Target {
  ArrayInfo info;
  std::size_t file = 0, number = 0;  // in that file
};

std::vector<ArrayInfo> arrays_of(const Exported& one) {
  std::vector<ArrayInfo> arrays;
  const auto rows = static_cast<std::int64_t>(one.rows);
  const std::string& name = one.variable.name;
  if (one.by_keys) arrays.push_back({keys_name(name), DType::kInt64, {rows}});
  for (const RowFields::Field& field : one.form.fields) {
    std::vector<std::int64_t> shape = one.variable.shape.dims();
    // A slot of one number a row has a shape of its own.
    if (field.width != one.form.fields[0].width) shape = {storage::row_count(one.variable), 1};
    if (one.by_keys) {
      shape.resize(std::max<std::size_t>(shape.size(), 1));
      shape[0] = rows;
    }
    arrays.push_back({field.name.empty() ? (one.by_keys ? values_name(name) : name)
                                         : slot_name(name, field.name),
                      one.form.dtype, std::move(shape)});
  }
  return arrays;
}

// Without slots the manifest in the file says so too, or an import would look for them.
VariableInfo chosen_variable(VariableInfo variable, const ExportRequest& request) {
  if (!request.no_slots) return variable;
  variable.slots.clear();
  variable.rule = {};
  return variable;
}

class Export {
 public:
  explicit Export(const ExportRequest& request)
      : request_(request),
        format_(array_format(request.file)),
        checkpoint_(checkpoint_at(request.path), storage::DatabaseFolders(request.folders)) {
    std::vector<VariableInfo> all = checkpoint_.manifest().variables;
    if (!request.variables.empty()) all.clear();
    for (const std::string& name : request.variables) all.push_back(checkpoint_.variable(name));
    for (VariableInfo& saved : all) {
      VariableInfo variable = chosen_variable(saved, request);
      RowFields form = storage::row_fields(variable);
      exported_.push_back({std::move(variable), std::move(form), saved.hashed});
    }
  }

  // Everything that can be wrong is found here.
  void plan() {
    std::vector<ArrayInfo> arrays;
    for (const Exported& one : exported_)
      for (ArrayInfo& info : arrays_of(one)) arrays.push_back(std::move(info));
    verify_expressible(format_, arrays);
    count();
    for (Exported& one : exported_) {
      one.first_array = targets_.size();
      for (ArrayInfo& info : arrays_of(one)) targets_.push_back({std::move(info)});
    }
    deal_out();
    for (const std::string& file : files_)
      if (system_disk().exists(file)) throw AlreadyExistsError(str(file, " exists already"));
  }

  void write() {
    std::vector<std::vector<ArrayInfo>> by_file(files_.size());
    for (const Target& target : targets_) by_file[target.file].push_back(target.info);
    for (std::size_t i = 0; i < files_.size(); ++i)
      writers_.push_back(std::make_unique<ArrayWriter>(files_[i], format_, by_file[i],
                                                       i == 0 ? metadata() : ArrayMetadata{}));
    Progress progress("exporting", checkpoint_.bytes());
    for (const Exported& one : exported_) write(one, progress);
    for (const auto& writer : writers_) writer->finish();
    if (files_.size() > 1) write_index();
  }

  void tell() const {
    std::uint64_t bytes = 0;
    for (const Target& target : targets_) bytes += target.info.bytes();
    if (request_.form == Form::kJson)
      print_json({{"path", checkpoint_.path()},
                  {"files", files_},
                  {"arrays", targets_.size()},
                  {"bytes", bytes}});
    else
      std::printf("%s: %zu arrays, %s%s, of %s\n", files_[0].c_str(), targets_.size(),
                  megabytes(bytes).c_str(),
                  files_.size() == 1 ? "" : str(", in ", files_.size(), " files").c_str(),
                  checkpoint_.path().c_str());
  }

 private:
  void count() {
    Progress progress("counting", checkpoint_.bytes());
    std::string incomplete;
    for (Exported& one : exported_) {
      RowsAhead rows(checkpoint_.path(), checkpoint_.rows(checkpoint_.variable(one.variable.name)));
      updates_[one.variable.name] = rows.updates();
      storage::RowBatch batch;
      while (rows.next(batch)) {
        one.rows += batch.rows.size();
        progress.add(batch.data.size());
      }
      const auto all = static_cast<std::uint64_t>(storage::row_count(one.variable));
      if (one.by_keys || one.rows == all) continue;
      if (request_.untouched == "error")
        incomplete +=
            str("\n  \"", one.variable.name, "\": ", all - one.rows, " of ", all, " rows");
      one.by_keys = request_.untouched == "keys";
      if (!one.by_keys) one.rows = all;
    }
    if (!incomplete.empty())
      throw InvalidArgumentError(str(
          "rows that were never touched are not in the checkpoint, since the program can make "
          "their initial values again:",
          incomplete,
          "\nTake zeros for them with --untouched zeros, or leave them out and write the numbers "
          "of the others with --untouched keys"));
  }

  void deal_out() {
    std::uint64_t bytes = 0;
    std::vector<std::size_t> in_file = {0};
    for (Target& target : targets_) {
      if (request_.shard_bytes != 0 && bytes != 0 &&
          bytes + target.info.bytes() > request_.shard_bytes) {
        in_file.push_back(0);
        bytes = 0;
      }
      bytes += target.info.bytes();
      target.file = in_file.size() - 1;
      target.number = in_file.back()++;
    }
    files_ = shard_files(request_.file, in_file.size());
  }

  ArrayMetadata metadata() const {
    storage::Manifest manifest = checkpoint_.manifest();
    manifest.databases.clear();
    manifest.base.clear();
    manifest.variables.clear();
    for (const Exported& one : exported_) manifest.variables.push_back(one.variable);
    return metadata_of(manifest, updates_);
  }

  void append(std::size_t array, const std::byte* bytes, std::size_t size) {
    writers_[targets_[array].file]->append(targets_[array].number, bytes, size);
  }

  void append_row(const Exported& one, const std::byte* row) {
    const std::size_t element = dtype_bytes(one.form.dtype);
    std::size_t array = one.first_array + (one.by_keys ? 1 : 0);
    for (const RowFields::Field& field : one.form.fields)
      append(array++, row + static_cast<std::size_t>(field.begin) * element,
             static_cast<std::size_t>(field.width) * element);
  }

  // Zeros, and slots as a rule begins with them.
  std::vector<std::byte> untouched_row(const Exported& one) const {
    std::vector<std::byte> row(one.form.bytes());
    if (one.form.dtype != DType::kFloat32) return row;
    const auto slots = rule_slots(one.variable.rule);
    for (std::size_t i = 1; i < one.form.fields.size() && i <= slots.size(); ++i)
      for (std::int64_t j = 0; j < one.form.fields[i].width; ++j)
        std::memcpy(row.data() + static_cast<std::size_t>(one.form.fields[i].begin + j) * 4,
                    &slots[i - 1].initial_value, 4);
    return row;
  }

  void write(const Exported& one, Progress& progress) {
    const VariableInfo& saved = checkpoint_.variable(one.variable.name);
    const std::size_t row_bytes = storage::row_fields(saved).bytes();
    const std::vector<std::byte> untouched = untouched_row(one);
    RowsAhead rows(checkpoint_.path(), checkpoint_.rows(saved));
    storage::RowBatch batch;
    std::int64_t next = 0;
    while (rows.next(batch)) {
      if (one.by_keys)
        append(one.first_array, reinterpret_cast<const std::byte*>(batch.rows.data()),
               batch.rows.size() * sizeof(std::int64_t));
      for (std::size_t i = 0; i < batch.rows.size(); ++i) {
        for (; !one.by_keys && next < batch.rows[i]; ++next) append_row(one, untouched.data());
        append_row(one, batch.data.data() + i * row_bytes);
        next = batch.rows[i] + 1;
      }
      progress.add(batch.data.size());
    }
    for (; !one.by_keys && next < storage::row_count(saved); ++next)
      append_row(one, untouched.data());
  }

  void write_index() {
    Json map = Json::object();
    std::uint64_t bytes = 0;
    for (const Target& target : targets_) {
      map[target.info.name] = std::filesystem::path(files_[target.file]).filename().string();
      bytes += target.info.bytes();
    }
    const Json index = {{"metadata", {{"total_size", bytes}}}, {"weight_map", map}};
    system_disk().write_atomically(request_.file + kIndexEnding, json_text(index, 2) + "\n");
  }

  const ExportRequest& request_;
  ArrayFormat format_;
  OpenedCheckpoint checkpoint_;
  std::vector<Exported> exported_;
  std::map<std::string, std::int64_t> updates_;
  std::vector<Target> targets_;
  std::vector<std::string> files_;
  std::vector<std::unique_ptr<ArrayWriter>> writers_;
};

}  // namespace

int export_arrays(const ExportRequest& request) {
  verify_local(request.file);
  Export work(request);
  work.plan();
  work.write();
  work.tell();
  return kFine;
}

}  // namespace cairn::tools::ckpt
