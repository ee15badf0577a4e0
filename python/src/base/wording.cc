#include "wording.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

namespace cairn::python {
namespace {

// Whole names that are said in another way.
constexpr std::pair<std::string_view, std::string_view> kSaid[] = {
    {"OnError::kSkipAndCount", "on_error=\"skip\""},
    {"EmptyFiles::kSkip", "empty_files=\"skip\""},
    {"CacheOptions::file", "filename"}};
// Advice that is another one in Python.
constexpr std::pair<std::string_view, std::string_view> kPhrases[] = {
    {"nn::probability() makes them of logits, and so does a model whose loss has the option "
     "from_logits = true",
     "cairn.sigmoid() makes them of logits, and so does a model whose loss has from_logits=True"},
    {"return Outputs, such as {{\"age\", age}, {\"words\", words}}",
     "return a dict, such as {\"age\": age, \"words\": words}"},
    {"kAutotune", "cairn.AUTOTUNE"},
    {"put large data into files", "put large data into files, by data.spill(folder)"},
    {"write its elements to files",
     "write its elements to files (data.spill(folder) does so for ragged columns in memory)"},
    {"numbers become float32 by cast()",
     "pass x.astype('float32'), or cairn.cast(x, \"float32\") where it is recorded"}};
// Classes that Python has as well; of all others the members are arguments of calls.
constexpr std::string_view kClasses[] = {
    "CsvColumn", "CsvSchema", "CsvLabel", "RecordField",        "ExampleFeature",
    "IdxColumn", "Dataset",   "Strategy", "ClusterCoordinator", "FeatureColumn"};
constexpr std::string_view kArguments[] = {"AdadeltaOptions",
                                           "AutoShardPolicy",
                                           "CacheOptions",
                                           "CheckpointPolicy",
                                           "CommunicationImplementation",
                                           "Compression",
                                           "DataServiceOptions",
                                           "EngineOptions",
                                           "LibsvmSchema",
                                           "LionOptions",
                                           "MonitorMode",
                                           "MultiWorkerOptions",
                                           "OpenOptions",
                                           "Padding",
                                           "PlanOptions",
                                           "RestoreOptions",
                                           "SgdOptions",
                                           "TfRecordOptions",
                                           "Visitation"};

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

template <std::size_t n>
bool among(const std::string_view (&all)[n], std::string_view name) {
  return std::ranges::find(all, name) != std::end(all);
}

// "kExactlyOnce" is "exactly_once", in quotes.
std::string word_of(std::string_view value) {
  std::string word = "\"";
  for (const char c : value.substr(1)) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0 && word.size() > 1) word += '_';
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return word + '"';
}

std::string said(std::string_view scope, std::string_view member, std::string_view whole) {
  for (const auto& [name, text] : kSaid)
    if (name == whole) return std::string(text);
  if (among(kClasses, scope)) return std::string(scope) + "." + std::string(member);
  if (scope == "nn") return "cairn.nn." + std::string(member);
  if (!among(kArguments, scope)) return std::string(scope) + "." + std::string(member);
  const bool value = member.size() > 1 && member[0] == 'k' &&
                     std::isupper(static_cast<unsigned char>(member[1])) != 0;
  return value ? word_of(member) : std::string(member);
}

}  // namespace

std::string in_python(const std::string& given) {
  std::string message = given;
  for (const auto& [phrase, instead] : kPhrases)
    if (const std::size_t at = message.find(phrase); at != std::string::npos)
      message.replace(at, phrase.size(), instead);
  std::string made;
  std::size_t from = 0;
  for (std::size_t at = message.find("::"); at != std::string::npos;
       at = message.find("::", at + 2)) {
    std::size_t begin = at, end = at + 2;
    while (begin > from && in_name(message[begin - 1])) --begin;
    while (end < message.size() && in_name(message[end])) ++end;
    const std::string_view whole = std::string_view(message).substr(begin, end - begin);
    made += message.substr(from, begin - from);
    made += said(whole.substr(0, at - begin), whole.substr(at + 2 - begin), whole);
    from = end;
  }
  return made + message.substr(from);
}

}  // namespace cairn::python
