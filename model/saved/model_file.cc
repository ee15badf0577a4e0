// Reading trusts no byte: the checksum of model.json is its own last field, and it holds those of
// all other files. A field that is added must be read with a default; a format number is due only
// when older programs would misread the folder.
#include "model/saved/model_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "core/base/look_up.h"
#include "core/base/sha256.h"
#include "core/disk/disk.h"
#include "storage/base64.h"

namespace cairn {
namespace {

constexpr const char* kKind = "cairn model";
constexpr std::size_t kHashedBytes = std::size_t{64} << 10;

// ---- checksums of files ----

struct FileSum {
  std::string name;  // relative to the model's folder
  std::uint64_t bytes = 0;
  std::string sha256;
};

// In pieces: weights may be larger than memory.
FileSum sum_of(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (!file) raise_disk_error(errno, "opening", path);
  FileSum sum;
  sum.name = name;
  Sha256 hash;
  std::string piece(kHashedBytes, '\0');
  while (const std::size_t read = std::fread(piece.data(), 1, piece.size(), file.get())) {
    look_up();
    hash.update(std::string_view(piece).substr(0, read));
    sum.bytes += read;
  }
  if (std::ferror(file.get()) != 0) raise_disk_error(errno, "reading", path);
  sum.sha256 = hash.hex();
  return sum;
}

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      names.push_back(std::filesystem::relative(entry.path(), folder).generic_string());
  std::erase(names, kModelFile);
  std::ranges::sort(names);
  return names;
}

[[noreturn]] void raise_damaged(const std::string& path, const std::string& how) {
  throw DataLossError(
      str("the saved model is damaged: ", path, " ", how, "; copy it anew, or save it again"));
}

void verify_files(const std::string& folder, const Json& files) {
  for (const Json& saved : files) {
    const std::string name = saved.at("name"), path = folder + "/" + name;
    if (!system_disk().exists(path)) raise_damaged(path, "is missing");
    const FileSum found = sum_of(folder, name);
    if (found.bytes != saved.at("bytes").get<std::uint64_t>())
      raise_damaged(path, str("has ", found.bytes, " bytes, and was saved with ",
                              saved.at("bytes").get<std::uint64_t>()));
    if (found.sha256 != saved.at("sha256").get<std::string>())
      raise_damaged(path, "is not as it was saved: its SHA-256 is another one");
  }
}

// ---- the checksum of the text ----

// The last field, behind all others.
std::string with_checksum(std::string text) {
  text.resize(text.size() - 2);  // "\n}"
  text += ",\n \"sha256\": \"";
  const std::string sum = sha256(text);
  return text + sum + "\"\n}\n";
}

bool checksum_is_right(const std::string& text) {
  constexpr std::size_t kDigits = 64, kEnd = 4;  // "\"\n}\n"
  if (text.size() < kDigits + kEnd || !text.ends_with("\"\n}\n")) return false;
  const std::string_view sum(text.data() + text.size() - kEnd - kDigits, kDigits);
  return sha256(std::string_view(text).substr(0, text.size() - kEnd - kDigits)) == sum;
}

// ---- what the model takes and gives ----

Json json_of(const std::vector<ColumnSpec>& columns) {
  Json list = Json::array();
  for (const ColumnSpec& column : columns)
    list.push_back({{"name", column.name},
                    {"dtype", dtype_name(column.type.dtype)},
                    {"shape", column.type.shape.dims()}});
  return list;
}

TensorType type_of(const Json& json) {
  return {parse_dtype(json.at("dtype").get<std::string>()),
          Shape(json.at("shape").get<std::vector<std::int64_t>>())};
}

std::vector<ColumnSpec> columns_of(const Json& list) {
  std::vector<ColumnSpec> columns;
  for (const Json& json : list) columns.push_back({json.at("name"), type_of(json)});
  return columns;
}

// The initial values of rows that the weights lack.
Json json_of(const Initializer& initializer) {
  Json json = {{"kind", static_cast<int>(initializer.kind)},
               {"a", initializer.a},
               {"b", initializer.b},
               {"seed", initializer.seed}};
  if (initializer.kind != Initializer::Kind::kValue) return json;
  const Tensor& value = initializer.value;
  json["value"] = storage::to_base64(
      std::string_view(reinterpret_cast<const char*>(value.raw()), value.bytes()));
  return json;
}

Initializer initializer_of(const Json& json, const TensorType& type) {
  const int kind = json.at("kind");
  if (kind < 0 || kind > static_cast<int>(Initializer::Kind::kValue))
    throw InvalidArgumentError(str("no initializer has the number ", kind));
  Initializer made{
      static_cast<Initializer::Kind>(kind), json.at("a"), json.at("b"), json.at("seed"), {}};
  if (made.kind != Initializer::Kind::kValue) return made;
  const std::string bytes = storage::from_base64(json.at("value").get<std::string>());
  made.value = Tensor(type.dtype, type.shape);
  if (bytes.size() != made.value.bytes())
    throw InvalidArgumentError("an initial value has another size than its variable");
  std::memcpy(made.value.mutable_raw(), bytes.data(), bytes.size());
  return made;
}

// Absent where it keeps all rows, as in files of earlier releases.
Json json_of(const RowPolicy& policy) {
  return {{"admit_after", policy.admit_after},
          {"sketch_rows", policy.sketch_rows},
          {"admit_probability", policy.admit_probability},
          {"rows_max", policy.rows_max},
          {"steps_to_live", policy.steps_to_live},
          {"spared_norm", policy.spared_norm},
          {"evictable", policy.evictable}};
}

RowPolicy policy_of(const Json& json) {
  return {json.at("admit_after"),        json.at("sketch_rows"),   json.at("admit_probability"),
          json.at("rows_max"),           json.at("steps_to_live"), json.at("spared_norm"),
          json.value("evictable", false)};
}

Json json_of(const VariableSpec& variable) {
  Json json = {{"name", variable.name},          {"dtype", dtype_name(variable.dtype)},
               {"shape", variable.shape.dims()}, {"trainable", variable.trainable},
               {"hashed", variable.hashed},      {"initializer", json_of(variable.initializer)}};
  if (variable.policy != RowPolicy{}) json["policy"] = json_of(variable.policy);
  return json;
}

VariableSpec variable_of(const Json& json) {
  const TensorType type = type_of(json);
  VariableSpec variable{.name = json.at("name"), .dtype = type.dtype, .shape = type.shape};
  variable.trainable = json.at("trainable");
  variable.hashed = json.at("hashed");
  if (json.contains("policy")) variable.policy = policy_of(json.at("policy"));
  variable.initializer = initializer_of(json.at("initializer"), type);
  verify_spec(variable);
  return variable;
}

SavedModel model_of(const Json& json, const std::string& folder) {
  SavedModel model{.folder = folder,
                   .name = json.at("name"),
                   .cairn_version = json.at("cairn"),
                   .global_step = json.at("global_step")};
  model.input.columns = columns_of(json.at("input"));
  model.outputs = columns_of(json.at("outputs"));
  for (const Json& each : json.at("variables")) model.variables.push_back(variable_of(each));
  model.label = json.at("label");
  model.metadata = json_text(json.at("metadata"));
  return model;
}

Json read_json(const std::string& path) {
  try {
    return parse_json(system_disk().read(path), path);
  } catch (const InvalidArgumentError& error) {
    raise_damaged(path, str("is no JSON: ", error.what()));
  }
}

}  // namespace

std::string model_text(const SavedModel& model) {
  Json variables = Json::array(), files = Json::array();
  for (const VariableSpec& variable : model.variables) variables.push_back(json_of(variable));
  for (const std::string& name : files_below(model.folder)) {
    const FileSum sum = sum_of(model.folder, name);
    files.push_back({{"name", sum.name}, {"bytes", sum.bytes}, {"sha256", sum.sha256}});
  }
  const Json json = {{"kind", kKind},
                     {"format", kModelFormat},
                     {"cairn", model.cairn_version},
                     {"name", model.name},
                     {"global_step", model.global_step},
                     {"input", json_of(model.input.columns)},
                     {"outputs", json_of(model.outputs)},
                     {"parameters", model.parameters()},
                     {"label", model.label},
                     {"variables", std::move(variables)},
                     {"metadata", parse_json(model.metadata, "a model's metadata")},
                     {"files", std::move(files)}};
  return with_checksum(json_text(json, 1));
}

// The checksum first: of a damaged file no number means anything.
SavedModel read_model_file(const std::string& folder) {
  const std::string path = folder + "/" + kModelFile;
  if (!system_disk().exists(path))
    throw NotFoundError(str("there is no saved model in ", folder, ": ", path,
                            " is missing; name a folder that save_model() or `cairn train` made"));
  if (!checksum_is_right(system_disk().read(path)))
    raise_damaged(path, "does not agree with its own checksum");
  try {
    const Json json = read_json(path);
    if (const Json& format = json.at("format"); format != kModelFormat)
      throw UnimplementedError(str(path, " is of format ", json_text(format), ", saved by Cairn ",
                                   json.value("cairn", "of no version"), "; this is Cairn ",
                                   CAIRN_VERSION, ", which reads format ", kModelFormat,
                                   ": use the Cairn that saved it, or save it anew"));
    verify_files(folder, json.at("files"));
    return model_of(json, folder);
  } catch (const Json::exception& error) {
    raise_damaged(path, str("lacks what a model has: ", error.what()));
  } catch (const InvalidArgumentError& error) {
    raise_damaged(path, str("describes no model: ", error.what()));
  }
}

Graph read_model_graph(const SavedModel& model) {
  const std::string path = model.folder + "/" + kGraphFile;
  const std::string bytes = system_disk().read(path);
  Graph graph = parse_graph(std::as_bytes(std::span(bytes)));
  bool fits = graph.arguments.empty() && graph.iterators == std::vector{model.input} &&
              graph.outputs.size() == model.outputs.size() &&
              graph.variables.size() == model.variables.size();
  for (std::size_t i = 0; fits && i < graph.variables.size(); ++i) {
    const VariableSpec& spec = model.variables[i];
    fits = graph.variables[i] == GraphVariable{spec.name, {spec.dtype, spec.shape}, false};
  }
  if (!fits)
    throw DataLossError(str(path, " is the graph of another model than ", model.folder, "/",
                            kModelFile, " describes"));
  return graph;
}

std::vector<std::string> model_files(const std::string& folder) {
  std::vector<std::string> names;
  const Json json = read_json(folder + "/" + kModelFile);
  for (const Json& file : json.at("files")) names.push_back(file.at("name"));
  return names;
}

bool is_saved_model(const std::string& folder) {
  const std::string path = folder + "/" + kModelFile;
  if (!system_disk().exists(path)) return false;
  return system_disk().read(path).starts_with(str("{\n \"kind\": \"", kKind, "\""));
}

}  // namespace cairn
