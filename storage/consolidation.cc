#include "storage/consolidation.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/failpoint.h"
#include "storage/database_place.h"

namespace cairn::storage {
namespace {

constexpr std::string_view kBeside = ".consolidating";
constexpr std::uint64_t kStepBytes = std::uint64_t{4} << 20;

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::vector<std::string> files_of(const DatabaseInfo& database) {
  std::vector<std::string> names;
  for (const FileInfo& file : database.files)
    names.push_back(file.name.substr(file.name.find('/') + 1));
  return names;
}

// The same database in a folder of another name.
DatabaseInfo renamed(DatabaseInfo database, const std::string& name) {
  for (FileInfo& file : database.files) file.name = name + file.name.substr(file.name.find('/'));
  database.name = name;
  return database;
}

// Databases are the same if their files are: a delta gives those of its base other names.
bool are_same(const DatabaseInfo& a, const DatabaseInfo& b) {
  return a.rows == b.rows && renamed(a, "x").files == renamed(b, "x").files;
}

bool goes_back_to(const Manifest& delta, const Manifest& source) {
  return delta.databases.size() >= source.databases.size() &&
         std::equal(source.databases.begin(), source.databases.end(), delta.databases.begin(),
                    are_same);
}

// As many as the shards that a variable was cut over: a restore reads as many at once.
std::size_t databases_for(const Manifest& manifest) {
  std::size_t most = 1;
  for (const VariableInfo& variable : manifest.variables)
    most = std::max(most, variable.parts.size());
  return most;
}

}  // namespace

bool is_consolidation(const std::string& name) { return name.ends_with(kBeside); }

Consolidation::Consolidation(Disk& disk, std::shared_ptr<RowStore> store, std::string path)
    : disk_(disk),
      store_(std::move(store)),
      path_(std::move(path)),
      beside_(path_ + std::string(kBeside)),
      source_(read_manifest(disk_, path_)),
      variables_(in_key_order(source_.variables)) {
  for (const VariableInfo& variable : source_.variables)
    if (variable.row_form == RowForm::kInt8 || variable.slot_form == SlotForm::kDropped)
      throw UnimplementedError(str(path_, " holds variable \"", variable.name, "\" as int8 or ",
                                   "without slots, and cannot be consolidated"));
  for (const DatabaseInfo& database : source_.databases)
    if (is_local(database.name))
      throw UnimplementedError(str(path_, " has databases in local folders of the ps, and cannot ",
                                   "be consolidated: `cairn ckpt copy` gathers them first"));
  disk_.remove_tree(beside_);
  try {
    link_all();
    open_all();
  } catch (...) {
    disk_.remove_tree(beside_);
    throw;
  }
}

Consolidation::~Consolidation() {
  rows_.reset();
  readers_.clear();
  writer_.reset();
  try {
    disk_.remove_tree(beside_);
  } catch (const Error&) {  // the next run that locks the folder removes it
  }
}

void Consolidation::link_all() {
  for (const DatabaseInfo& database : source_.databases) {
    verify_database_name(database.name);
    disk_.link_files(path_ + "/" + database.name, beside_ + "/" + database.name,
                     files_of(database));
  }
}

void Consolidation::open_all() {
  for (const DatabaseInfo& database : source_.databases)
    readers_.push_back(store_->open(beside_ + "/" + database.name));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < databases_for(source_); ++i) names.push_back(str("full-", i));
  writer_ = std::make_unique<CheckpointWriter>(*store_, beside_, std::move(names));
}

bool Consolidation::step() {
  for (std::uint64_t bytes = 0; bytes < kStepBytes; bytes += batch_.data.size()) {
    while (!rows_.has_value() || !rows_->next(batch_)) {
      if (rows_.has_value()) ++next_;
      rows_.reset();
      if (next_ == variables_.size()) {
        if (writer_ != nullptr) finish();
        return false;
      }
      VariableInfo& variable = variables_[next_];
      std::vector<DatabaseReader*> readers;
      for (const auto& reader : readers_) readers.push_back(reader.get());
      rows_.emplace(readers, variable, RowRange{0, row_count(variable)});
      variable.parts = writer_->begin(variable, rows_->updates(), rows_->seen(),
                                      {variable.row_form, variable.slot_form, source_.compression});
    }
    writer_->add(batch_);
  }
  return true;
}

void Consolidation::finish() {
  made_ = writer_->finish();
  writer_.reset();
  readers_.clear();
}

std::optional<Manifest> Consolidation::put_into(const std::string& path) {
  CAIRN_CHECK(!made_.empty(), "a consolidation that is not complete");
  Manifest manifest = read_manifest(disk_, path);
  if (!goes_back_to(manifest, source_)) return std::nullopt;
  const bool itself = path == path_;
  std::vector<DatabaseInfo> databases;
  for (const DatabaseInfo& made : made_) {
    const std::string name = itself ? made.name : name_of(path_) + "." + made.name;
    disk_.remove_tree(path + "/" + name);
    disk_.link_files(beside_ + "/" + made.name, path + "/" + name, files_of(made));
    databases.push_back(renamed(made, name));
  }
  databases.insert(
      databases.end(),
      manifest.databases.begin() + static_cast<std::ptrdiff_t>(source_.databases.size()),
      manifest.databases.end());
  manifest.databases = std::move(databases);
  if (itself) {
    manifest.base.clear();
    for (VariableInfo& variable : manifest.variables)
      for (const VariableInfo& written : variables_)
        if (written.name == variable.name) variable.parts = written.parts;
  }
  failpoint("consolidate.linked");
  commit(disk_, path, manifest);
  failpoint("consolidate.end");
  return manifest;
}

}  // namespace cairn::storage
