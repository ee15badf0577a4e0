// Manifest <-> text. Writing is plain; reading trusts nothing, since a manifest lies on a disk for
// years: the checksum finds damage, and every number is checked against its type on the way in, so
// that a forged or foreign file gives a DataLoss and not a wrong value.
//
// A field that is added must be read with a default, because older manifests lack it, and needs no
// new format number. A number is due only when older programs would misread the file.

#include <algorithm>
#include <concepts>
#include <utility>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/graph/custom_rule.h"
#include "storage/base64.h"
#include "storage/database_place.h"
#include "storage/manifest.h"

namespace cairn::storage {
namespace {

using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

constexpr std::string_view kChecksumField = " \"crc32c\": ";
constexpr std::string_view kChecksumLine = "checksum ";  // of format 1
constexpr const char* kCure =
    ". Restore from another checkpoint of this folder; `cairn ckpt verify` names the sound ones";

Json to_json(const UpdateRule& rule) {
  return {{"kind", rule_name(rule)},
          {"number", static_cast<int>(rule.kind)},
          {"constants", rule.constants}};
}

Json to_json(const VariableInfo& variable) {
  Json parts = Json::array();
  for (const RowRange& part : variable.parts) parts.push_back({part.begin, part.end});
  Json json = {{"name", variable.name},          {"dtype", dtype_name(variable.dtype)},
               {"shape", variable.shape.dims()}, {"trainable", variable.trainable},
               {"rule", to_json(variable.rule)}, {"slots", variable.slots},
               {"parts", std::move(parts)},      {"hashed", variable.hashed}};
  if (variable.row_form != RowForm::kExact) json["rows_as"] = form_name(variable.row_form);
  if (variable.slot_form != SlotForm::kExact) json["slots_as"] = form_name(variable.slot_form);
  if (variable.evicts) json["evicts"] = true;
  return json;
}

// Older programs misread nothing where all is exact.
int format_of(const Manifest& manifest) {
  for (const DatabaseInfo& database : manifest.databases)
    if (is_local(database.name)) return kLocalManifestVersion;
  const bool evicts = std::ranges::any_of(manifest.variables, &VariableInfo::evicts);
  if (evicts && !manifest.base.empty()) return kGoneManifestVersion;
  const bool exact =
      manifest.compression == Compression::kNone &&
      std::all_of(manifest.variables.begin(), manifest.variables.end(), [](const auto& variable) {
        return variable.row_form == RowForm::kExact && variable.slot_form == SlotForm::kExact;
      });
  return exact ? kManifestVersion : kEncodedManifestVersion;
}

Json to_json(const DatabaseInfo& database) {
  Json files = Json::array();
  for (const FileInfo& file : database.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"crc32c", file.checksum}});
  Json json = {{"name", database.name},
               {"rows", database.rows},
               {"bytes", database.bytes},
               {"files", std::move(files)}};
  if (!is_local(database.name)) return json;
  Json parts = Json::array();
  for (const DatabasePart& part : database.parts)
    parts.push_back({part.variable, part.rows.begin, part.rows.end});
  json["task"] = database.task;
  json["parts"] = std::move(parts);
  return json;
}

Json to_json(const DatasetPosition& at) {
  return {{"pipeline", at.pipeline},
          {"ordinal", at.ordinal},
          {"state", to_base64(at.state)},
          {"state_ordinal", at.state_ordinal},
          {"committed", at.committed}};
}

template <typename T>
Json list_of(const std::vector<T>& things) {
  Json list = Json::array();
  for (const T& thing : things) list.push_back(to_json(thing));
  return list;
}

// A JSON number on its way into an integer. It converts to any integral type that can hold it, and
// refuses the rest; the library's own conversion wraps around, and is undefined for a fraction
// beyond the type.
struct Integer {
  const Json& json;

  template <std::integral T>
  operator T() const {
    if (json.is_number_unsigned() && std::in_range<T>(json.get<std::uint64_t>()))
      return json.get<T>();
    if (json.is_number_integer() && !json.is_number_unsigned() &&
        std::in_range<T>(json.get<std::int64_t>()))
      return json.get<T>();
    throw InvalidArgumentError(
        str(json_text(json), " stands where an integer of ", 8 * sizeof(T), " bits is wanted"));
  }
};

Ancestor read_ancestor(const Json& json) { return {Integer{json.at(0)}, Integer{json.at(1)}}; }

RowRange read_part(const Json& json) { return {Integer{json.at(0)}, Integer{json.at(1)}}; }

Ranges read_ranges(const Json& json) {
  Ranges ranges;
  for (const Json& range : json) ranges.emplace_back(Integer{range.at(0)}, Integer{range.at(1)});
  return ranges;
}

// The number counts; the name beside it in the file is for readers.
UpdateRule read_rule(const Json& json) {
  UpdateRule rule;
  const int kind = Integer{json.at("number")};
  if (kind < 0 || kind >= kRuleKindCount)
    throw DataLossError(
        str("update rule ", kind, " is unknown: a newer version of Cairn wrote it"));
  rule.kind = static_cast<RuleKind>(kind);
  rule.constants = json.at("constants").get<decltype(rule.constants)>();
  return rule;
}

VariableInfo read_variable(const Json& json) {
  VariableInfo variable{.name = json.at("name"),
                        .dtype = parse_dtype(json.at("dtype").get<std::string>())};
  std::vector<std::int64_t> dims;
  for (const Json& dim : json.at("shape")) dims.push_back(Integer{dim});
  variable.shape = Shape(std::move(dims));
  variable.trainable = json.at("trainable");
  variable.rule = read_rule(json.at("rule"));
  variable.slots = json.at("slots").get<std::vector<std::string>>();
  variable.rule = with_saved_slots(variable.rule, variable.slots);
  for (const Json& part : json.at("parts")) variable.parts.push_back(read_part(part));
  if (json.contains("hashed")) variable.hashed = json.at("hashed");
  if (json.contains("rows_as"))
    variable.row_form = parse_row_form(json.at("rows_as").get<std::string>(), "rows_as");
  if (json.contains("slots_as"))
    variable.slot_form = parse_slot_form(json.at("slots_as").get<std::string>(), "slots_as");
  if (json.contains("evicts")) variable.evicts = json.at("evicts");
  return variable;
}

DatabaseInfo read_database(const Json& json) {
  DatabaseInfo database{.name = json.at("name"),
                        .rows = Integer{json.at("rows")},
                        .bytes = Integer{json.at("bytes")}};
  for (const Json& file : json.at("files"))
    database.files.push_back(
        {file.at("name"), Integer{file.at("bytes")}, Integer{file.at("crc32c")}});
  if (!is_local(database.name)) return database;
  database.task = json.at("task");
  for (const Json& part : json.at("parts"))
    database.parts.push_back({part.at(0), {Integer{part.at(1)}, Integer{part.at(2)}}});
  return database;
}

DatasetPosition read_position(const Json& json) {
  return {json.at("pipeline"), Integer{json.at("ordinal")},
          from_base64(json.at("state").get<std::string>()), Integer{json.at("state_ordinal")},
          read_ranges(json.at("committed"))};
}

Manifest read_json(const Json& json) {
  Manifest out;
  out.checkpoint = Integer{json.at("checkpoint")};
  out.global_step = Integer{json.at("global_step")};
  out.saved_at_us = Integer{json.at("saved_at_us")};
  if (json.contains("lost_updates")) out.lost_updates = Integer{json.at("lost_updates")};
  out.session = Integer{json.at("session")};
  if (json.contains("ancestors"))  // absent in older ones
    for (const Json& ancestor : json.at("ancestors"))
      out.ancestors.push_back(read_ancestor(ancestor));
  out.seed = Integer{json.at("seed")};
  out.layout_version = Integer{json.at("layout_version")};
  for (const Json& variable : json.at("variables"))
    out.variables.push_back(read_variable(variable));
  for (const Json& database : json.at("databases"))
    out.databases.push_back(read_database(database));
  out.low_watermark = Integer{json.at("low_watermark")};
  out.applied = read_ranges(json.at("applied"));
  for (const Json& position : json.at("datasets")) out.datasets.push_back(read_position(position));
  out.metadata = json_text(json.at("metadata"));
  out.base = json.at("base");
  if (json.contains("compression"))
    out.compression = parse_compression(json.at("compression").get<std::string>(), "compression");
  return out;
}

[[noreturn]] void refuse_changed(const std::string& path) {
  throw DataLossError(
      str("the manifest ", path, " was changed: its checksum does not match its bytes", kCure));
}

// The JSON of a text of format 1 whose checksum is right. The checksum stands behind the JSON, on a
// line of its own.
std::string_view checked_body_1(std::string_view text, const std::string& path) {
  const std::size_t line =
      text.size() > 1 ? text.rfind('\n', text.size() - 2) : std::string_view::npos;
  if (line == std::string_view::npos || !text.ends_with('\n') ||
      !text.substr(line + 1).starts_with(kChecksumLine))
    throw DataLossError(
        str("the manifest ", path, " is cut short: it does not end with its checksum", kCure));
  const std::string_view body = text.substr(0, line + 1);
  if (text.substr(line + 1 + kChecksumLine.size()) != str(crc32c(body), "\n")) refuse_changed(path);
  return body;
}

// The JSON of a text whose checksum is right. It is the last field, over all bytes before its line,
// so that the file stays JSON and the check needs no canonical form.
std::string_view checked_body(std::string_view text, const std::string& path) {
  const std::size_t line =
      text.ends_with("\n}\n") ? text.rfind(kChecksumField) : std::string_view::npos;
  if (line == std::string_view::npos) return checked_body_1(text, path);
  if (text.substr(line) != str(kChecksumField, crc32c(text.substr(0, line)), "\n}\n"))
    refuse_changed(path);
  return text;
}

}  // namespace

std::string to_text(const Manifest& manifest) {
  const Json metadata = parse_json(manifest.metadata, "a checkpoint's metadata");
  Json ancestors = Json::array();
  for (const Ancestor& ancestor : manifest.ancestors)
    ancestors.push_back({ancestor.session, ancestor.checkpoint});
  Json json = {{"format", format_of(manifest)},
               {"checkpoint", manifest.checkpoint},
               {"global_step", manifest.global_step},
               {"saved_at_us", manifest.saved_at_us},
               {"lost_updates", manifest.lost_updates},
               {"session", manifest.session},
               {"ancestors", ancestors},
               {"seed", manifest.seed},
               {"layout_version", manifest.layout_version},
               {"base", manifest.base},
               {"metadata", metadata},
               {"variables", list_of(manifest.variables)},
               {"databases", list_of(manifest.databases)},
               {"low_watermark", manifest.low_watermark},
               {"applied", manifest.applied},
               {"datasets", list_of(manifest.datasets)}};
  if (manifest.compression != Compression::kNone)
    json["compression"] = compression_name(manifest.compression);
  std::string body = json_text(json, 1);
  // The closing brace gives way to one more field.
  body.replace(body.size() - 2, 2, ",\n");
  const std::uint32_t checksum = crc32c(body);
  return body + str(kChecksumField, checksum, "\n}\n");
}

Manifest parse_manifest(std::string_view text, const std::string& path) {
  const std::string_view body = checked_body(text, path);
  try {
    const Json json = parse_json(body, "it");
    const int format = Integer{json.at("format")};
    if (format < 1 || format > kLocalManifestVersion)
      throw UnimplementedError(str("the manifest ", path, " has format ", format,
                                   ", this Cairn reads 1 to ", kLocalManifestVersion));
    return read_json(json);
  } catch (const Json::exception& error) {
    throw DataLossError(str("the manifest ", path, " is malformed: ", error.what(), kCure));
  } catch (const InvalidArgumentError& error) {
    throw DataLossError(str("the manifest ", path, " is malformed: ", error.what(), kCure));
  }
}

}  // namespace cairn::storage
