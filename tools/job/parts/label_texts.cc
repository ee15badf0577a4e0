#include "tools/job/parts/label_texts.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "data/dataset/dataset.h"
#include "data/dataset/dataset_iterator.h"
#include "data/feature/printable.h"
#include "tools/job/spec/job_format.h"

namespace cairn::tools {
namespace {

constexpr std::size_t kTextsShown = 5;
constexpr std::size_t kTextsMax = 10'000;  // that are counted, of a column that is no label

struct NamedTexts {
  std::string key;  // of the job file
  std::vector<std::string> texts;
};

CsvLabel label_of(const Job& job) {
  const CsvLabel* const texts = job.data.form().label_texts();
  return texts == nullptr ? CsvLabel() : *texts;
}

NamedTexts positive_texts(const Job& job) {
  return {str("data.", job.data.format, ".label.positive"), label_of(job).positive};
}

bool has_texts(const Job& job) { return job.data.form().label_texts() != nullptr; }

// The first is that of the positive texts, the second that of the negative ones.
std::vector<NamedTexts> named_texts(const Job& job) {
  return {positive_texts(job),
          {str("data.", job.data.format, ".label.negative"), label_of(job).negative},
          {"model.classes", job.model.class_texts}};
}

// Labels, each with how many rows have it.
class LabelCounts {
 public:
  void add(const std::string& text) {
    if (counts_.size() < kTextsMax || counts_.contains(text)) ++counts_[text];
  }
  bool has(const std::string& text) const { return counts_.contains(text); }
  bool has_any(const std::vector<std::string>& texts) const {
    return std::ranges::any_of(texts, [this](const std::string& text) { return has(text); });
  }
  bool has_all(const std::vector<std::string>& texts) const {
    return std::ranges::all_of(texts, [this](const std::string& text) { return has(text); });
  }
  bool empty() const { return counts_.empty(); }
  // The most frequent ones.
  std::string text() const {
    std::vector<std::pair<std::int64_t, std::string>> ranked;
    for (const auto& [text, count] : counts_) ranked.emplace_back(-count, text);
    std::ranges::sort(ranked);
    std::string all;
    for (std::size_t i = 0; i < std::min(kTextsShown, ranked.size()); ++i)
      all += str(i == 0 ? "\"" : ", \"", printable(ranked[i].second), "\" (", -ranked[i].first,
                 ranked[i].first == -1 ? " row)" : " rows)");
    return all + (ranked.size() > kTextsShown ? ", ..." : "");
  }

 private:
  std::map<std::string, std::int64_t> counts_;
};

// The texts that stand for no label, where such rows are left out.
std::set<std::string> unknown_texts(const Job& job) {
  std::set<std::string> unknown;
  const CsvSchema* const cells = job.data.form().cells();
  if (!job.data.truth.skip_unknown || cells == nullptr) return unknown;
  unknown = {"", cells->unknown};
  for (const CsvColumn& column : cells->columns)
    if (column.name == cells->label.column)
      unknown.insert(column.unknown.begin(), column.unknown.end());
  return unknown;
}

// Counts labels until `enough` says so.
template <typename Enough>
void count_labels(const Job& job, const std::vector<std::string>& files,
                  const std::vector<std::string>& where, LabelCounts& counts, Enough enough) {
  if (files.empty() || enough()) return;
  const JobFormat& format = job.data.form();
  const Dataset rows = format.label_rows(files, where).batch(256);
  const ElementSpec spec = rows.element_spec();
  const std::size_t place = spec.columns.size() == 1 ? 0 : spec.find(format.label());
  const std::set<std::string> unknown = unknown_texts(job);
  const auto batches = open(rows);
  while (!enough()) {
    const auto batch = batches->next();
    if (!batch) return;
    for (const auto& cell : (*batch)[place].string_values())
      if (const auto text = format.label_in(cell); text && !unknown.contains(*text))
        counts.add(*text);
  }
}

[[noreturn]] void refuse(const std::string& key, const std::string& wanted, const char* where,
                         const LabelCounts& counts) {
  throw InvalidArgumentError(str(key, ": no row of ", where, " has the label \"", printable(wanted),
                                 "\"; its labels are ", counts.text(),
                                 ": write the texts as the file has them, or leave out the one "
                                 "that does not occur"));
}

}  // namespace

void verify_label_texts(const Job& job) {
  if (!has_texts(job)) return;
  const std::vector<NamedTexts> named = named_texts(job);
  LabelCounts counts;
  const auto all_seen = [&] {
    return std::ranges::all_of(named,
                               [&](const NamedTexts& each) { return counts.has_all(each.texts); });
  };
  if (all_seen()) return;  // there are none
  count_labels(job, job.data.train, job.data.where, counts, all_seen);
  if (counts.empty()) return;
  for (std::size_t i = 0; i < 2; ++i)
    if (!named[i].texts.empty() && !counts.has_any(named[i].texts))
      refuse(named[i].key, named[i].texts.front(), "data.train", counts);
  count_labels(job, job.validation.files, job.validation.where, counts, all_seen);
  count_labels(job, job.data.test, job.data.test_where, counts, all_seen);
  for (const NamedTexts& each : named)
    for (const std::string& text : each.texts)
      if (!counts.has(text)) refuse(each.key, text, "the data", counts);
}

std::string no_positive_warning(const Job& job, const std::vector<std::string>& files,
                                const std::vector<std::string>& where, const std::string& key) {
  const NamedTexts positive = positive_texts(job);
  if (!has_texts(job) || positive.texts.empty() || files.empty()) return "";
  LabelCounts counts;
  count_labels(job, files, where, counts, [&] { return counts.has_any(positive.texts); });
  if (counts.empty() || counts.has_any(positive.texts)) return "";
  return str("warning: ", key, ": every label counts as 0, because no row has a label of ",
             positive.key, ", such as \"", printable(positive.texts.front()), "\"; its labels are ",
             counts.text());
}

std::vector<std::string> no_positive_warnings(const Job& job) {
  std::vector<std::string> warnings;
  for (const auto& [files, where, key] :
       {std::tuple(&job.validation.files, &job.validation.where, "validation.files"),
        std::tuple(&job.data.test, &job.data.test_where, "data.test")})
    if (std::string warning = no_positive_warning(job, *files, *where, key); !warning.empty())
      warnings.push_back(std::move(warning));
  return warnings;
}

}  // namespace cairn::tools
