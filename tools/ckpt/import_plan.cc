#include "tools/ckpt/import_plan.h"

#include <limits>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/disk/disk.h"
#include "storage/database_place.h"
#include "storage/merged_rows.h"
#include "tools/ckpt/format/manifest_arrays.h"

namespace cairn::tools::ckpt {
namespace {

using storage::VariableInfo;

class Planner {
 public:
  explicit Planner(ArrayListing listing) {
    for (StoredArray& array : listing.arrays) {
      const std::string name = array.info.name;
      if (!arrays_.emplace(name, std::move(array)).second) wrong(name, "is there twice");
    }
  }

  void add(VariableInfo variable, std::int64_t updates) {
    ImportedVariable one{std::move(variable), updates};
    const std::string& name = one.variable.name;
    const storage::RowFields form = storage::row_fields(one.variable);
    const bool by_keys = one.variable.hashed || !arrays_.contains(name);
    if (by_keys) {
      one.keys = take(keys_name(name));
      if (!one.keys.has_value()) return;
      if (one.keys->info.dtype != DType::kInt64 || one.keys->info.shape.size() != 1)
        return wrong(one.keys->info.name, "is no list of int64");
      one.rows = static_cast<std::uint64_t>(one.keys->info.shape[0]);
    } else {
      one.rows = static_cast<std::uint64_t>(storage::row_count(one.variable));
    }
    for (const auto& field : form.fields) {
      auto array = take(!field.name.empty() ? slot_name(name, field.name)
                        : by_keys           ? values_name(name)
                                            : name);
      if (!array.has_value()) return;
      const std::uint64_t bytes =
          one.rows * static_cast<std::uint64_t>(field.width) * dtype_bytes(form.dtype);
      if (array->info.dtype != form.dtype || array->info.bytes() != bytes)
        return wrong(array->info.name,
                     str("has ", array->info.bytes(), " bytes of ", dtype_name(array->info.dtype),
                         ", not ", bytes, " of ", dtype_name(form.dtype)));
      one.fields.push_back(std::move(*array));
    }
    planned_.push_back(std::move(one));
  }

  // For a file that another program wrote.
  void add_all(const std::map<std::string, std::int64_t>& rows,
               const std::map<std::string, BundleSlots>& slots) {
    std::vector<VariableInfo> found;
    std::set<std::string> slot_arrays;
    for (const auto& [name, of] : slots)
      for (const std::string& slot : of.slots) slot_arrays.insert(slot_name(name, slot));
    for (const auto& [name, array] : arrays_) {
      if (slot_arrays.contains(name)) continue;
      const std::string base = name.substr(0, name.rfind('/'));
      if (name == values_name(base) && arrays_.contains(keys_name(base))) {
        const auto given = rows.find(base);
        VariableInfo variable = variable_of(base, array.info);
        std::vector<std::int64_t> dims = array.info.shape;
        if (dims.empty()) {
          wrong(name, "has no rows");
          continue;
        }
        dims[0] = given != rows.end() ? given->second : std::numeric_limits<std::int64_t>::max();
        variable.shape = Shape(std::move(dims));
        variable.hashed = true;
        found.push_back(std::move(variable));
      } else if (name != keys_name(base) || !arrays_.contains(values_name(base))) {
        found.push_back(variable_of(name, array.info));
      }
    }
    for (VariableInfo& variable : found) {
      const auto its = slots.find(variable.name);
      if (its == slots.end()) {
        add(std::move(variable), 0);
        continue;
      }
      variable.rule = its->second.rule;
      variable.slots = its->second.slots;
      add(std::move(variable), its->second.updates);
    }
  }

  std::vector<ImportedVariable> finish(const std::string& file) {
    for (const auto& [name, array] : arrays_) wrong(name, "belongs to no variable of the manifest");
    if (!wrong_.empty())
      throw InvalidArgumentError(str("nothing was imported of ", file, ":", wrong_));
    return std::move(planned_);
  }

 private:
  static VariableInfo variable_of(const std::string& name, const ArrayInfo& info) {
    return {.name = name, .dtype = info.dtype, .shape = Shape(info.shape)};
  }
  std::optional<StoredArray> take(const std::string& name) {
    const auto found = arrays_.find(name);
    if (found == arrays_.end()) {
      wrong(name, "is missing");
      return std::nullopt;
    }
    StoredArray array = std::move(found->second);
    arrays_.erase(found);
    return array;
  }
  void wrong(const std::string& name, const std::string& what) {
    wrong_ += str("\n  the array \"", name, "\" ", what);
  }

  std::map<std::string, StoredArray> arrays_;  // not taken yet
  std::vector<ImportedVariable> planned_;
  std::string wrong_;
};

ArrayListing list_one(const std::string& file) {
  const auto source = open_bytes(file);
  if (file.ends_with(".index")) return list_bundle(*source, file);
  return array_format(file) == ArrayFormat::kNpz ? list_npz(*source, file)
                                                 : list_safetensors(*source, file);
}

}  // namespace

ImportPlan plan_import(const std::string& file, ArrayListing listing,
                       const std::map<std::string, std::int64_t>& rows,
                       const std::map<std::string, BundleSlots>& slots) {
  ImportPlan plan;
  std::map<std::string, std::int64_t> updates;
  const bool ours = read_metadata(listing.metadata, file, plan.manifest, updates);
  Planner planner(std::move(listing));
  for (const VariableInfo& variable : plan.manifest.variables)
    planner.add(variable, updates.contains(variable.name) ? updates.at(variable.name) : 0);
  if (!ours) planner.add_all(rows, slots);
  plan.variables = planner.finish(file);
  return plan;
}

ArrayListing list_arrays(const std::string& file) {
  if (!file.ends_with(kIndexEnding)) return list_one(file);
  std::map<std::string, std::string> places;
  try {
    places = parse_json(system_disk().read(file), file)
                 .at("weight_map")
                 .get<std::map<std::string, std::string>>();
  } catch (const Json::exception& error) {
    throw DataLossError(str(file, " is no index: ", error.what()));
  }
  std::map<std::string, bool> files;
  for (const auto& [name, place] : places) files[place] = true;
  ArrayListing all;
  for (const auto& [name, unused] : files) {
    storage::verify_database_name(name);  // of the same folder
    ArrayListing one = list_one(folder_of(file) + "/" + name);
    for (StoredArray& array : one.arrays) all.arrays.push_back(std::move(array));
    all.metadata.merge(one.metadata);
  }
  return all;
}

}  // namespace cairn::tools::ckpt
