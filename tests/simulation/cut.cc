#include "tests/simulation/cut.h"

#include <algorithm>

#include "core/base/error.h"

namespace cairn::simulation {
namespace {

using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Ranges committed_elements(const storage::Manifest& manifest) {
  Ranges all;
  for (const storage::DatasetPosition& position : manifest.datasets) {
    if (position.state_ordinal > 0) all.emplace_back(0, position.state_ordinal);
    all.insert(all.end(), position.committed.begin(), position.committed.end());
  }
  return all;
}

// A round's members are kept before any shard applies it, so that no loss of power takes them.
std::int64_t updates_of(const Scenario& scenario, const storage::Manifest& manifest) {
  const bool by_steps = scenario.loses_power() && !scenario.consistency.in_rounds();
  return by_steps ? manifest.global_step : elements_committed(manifest);
}

class CutJudge {
 public:
  CutJudge(const Scenario& scenario, const storage::Manifest& manifest, const Layout& layout,
           const std::set<int>& may_lack)
      : scenario_(scenario),
        manifest_(manifest),
        layout_(layout),
        may_lack_(may_lack),
        updates_(updates_of(scenario, manifest)) {}

  void judge(const Values& values) {
    const Due committed = committed_at(manifest_, scenario_);
    judge_number("v", parts("v").front(), values.v);
    judge_number("w", parts("w").front(), values.w);
    if (scenario_.wide > 0) judge_wide(values.wide);
    judge_table("rows", values.rows, committed.rows);
    judge_table("hashed", values.hashed, committed.hashed);
    judge_sums();
  }
  void complain(std::string what) { verdict_.complaints.push_back(std::move(what)); }
  CutVerdict take() { return std::move(verdict_); }

 private:
  const std::vector<Part>& parts(const char* variable) const {
    return layout_.find(variable)->parts;
  }

  // Where all copies of a shard may be lost, each shard lacks updates for itself: then the numbers
  // of shards stand for those of ps.
  int place_of(const Part& part) const {
    return scenario_.copies.some_lost() ? static_cast<int>(part.shard) : ps_of(part.shard, layout_);
  }

  // A loss of power may lose a closure on any ps.
  bool may_lack(int ps) const {
    return may_lack_.contains(ps) || scenario_.loses_power() || scenario_.copies.some_lost();
  }

  // Judges a number that every closure adds one to.
  void judge_number(const std::string& what, const Part& part, std::int64_t value) {
    const int ps = place_of(part);
    const std::int64_t lacks = updates_ - value;
    const auto known = verdict_.lacks.try_emplace(ps, lacks).first;
    if (lacks != known->second)
      complain(str("torn on ps ", ps, ": ", what, " lacks ", lacks, " of ", updates_,
                   " updates, something else there ", known->second));
    else if (lacks < 0)
      complain(str(what, " on ps ", ps, " holds ", value, " updates, more than the ", updates_,
                   " that are committed"));
    else if (lacks > 0 && !may_lack(ps))
      complain(str(what, " on ps ", ps, ", which was never lost, lacks ", lacks, " of ", updates_,
                   " updates"));
  }

  void judge_wide(const std::vector<std::int64_t>& wide) {
    for (const Part& part : parts("wide"))
      for (std::int64_t i = part.rows.begin; i < part.rows.end; ++i)
        judge_number(str("element ", i, " of wide"), part, wide.at(static_cast<std::size_t>(i)));
  }

  void judge_table(const char* table, const RowCounts& values, const RowCounts& committed) {
    std::map<int, std::int64_t> lacks;
    for (const Part& part : parts(table)) {
      const int ps = place_of(part);
      if (scenario_.spread == Spread::kEveryShard)
        judge_number(str("shard ", part.shard, "'s sum of ", table), part,
                     total(values, part.rows));
      if (scenario_.loses_power()) continue;  // elements may count twice
      for (std::size_t i = 0; i < committed.size(); ++i) {
        const auto [row, due] = committed[i];
        if (row < part.rows.begin || row >= part.rows.end) continue;
        const std::int64_t value = values.at(i).second;
        if (value > due)
          complain(str("row ", row, " of ", table, " on ps ", ps, " is ", value, ", and ", due,
                       " committed elements add to it"));
        if (value < due && !may_lack(ps))
          complain(str("row ", row, " of ", table, " on ps ", ps, ", which was never lost, is ",
                       value, ", not ", due));
        lacks[ps] += due - value;
      }
    }
    if (scenario_.spread == Spread::kOneRow)
      for (const auto& [ps, number] : lacks) at_least_[ps] = std::max(at_least_[ps], number);
  }

  // The reported number is a bound for each shard.
  void judge_bounds() {
    const auto reported = static_cast<std::int64_t>(manifest_.lost_updates);
    for (const auto* all : {&verdict_.lacks, &at_least_})
      for (const auto& [shard, lacks] : *all)
        if (lacks > reported)
          complain(str("shard ", shard, " lacks ", lacks, " updates, and ", reported,
                       " are reported lost"));
    verdict_.lacks.clear();
  }

  void judge_sums() {
    if (scenario_.copies.some_lost()) return judge_bounds();
    std::int64_t all = 0;
    bool exact = true;
    std::set<int> servers;
    for (const ShardLayout& shard : layout_.shards) servers.insert(static_cast<int>(shard.home));
    for (const int ps : servers) {
      const auto known = verdict_.lacks.find(ps);
      exact &= known != verdict_.lacks.end();
      all += known != verdict_.lacks.end() ? known->second : at_least_[ps];
      if (known != verdict_.lacks.end() && at_least_[ps] > known->second)
        complain(str("rows on ps ", ps, " lack ", at_least_[ps], " updates, everything else there ",
                     known->second));
    }
    const auto reported = static_cast<std::int64_t>(manifest_.lost_updates);
    if (exact ? all != reported : all > reported)
      complain(str("all ps together lack ", exact ? "" : "at least ", all, " updates, and ",
                   reported, " are reported lost"));
  }

  const Scenario& scenario_;
  const storage::Manifest& manifest_;
  const Layout& layout_;
  const std::set<int>& may_lack_;
  const std::int64_t updates_;  // that are committed
  std::map<int, std::int64_t> at_least_;
  CutVerdict verdict_;
};

}  // namespace

int ps_of(ShardId shard, const Layout& layout) {
  return shard < layout.shards.size() ? static_cast<int>(layout.shards[shard].home) : -1;
}

Due committed_at(const storage::Manifest& manifest, const Scenario& scenario) {
  return due(scenario, committed_elements(manifest));
}

std::int64_t elements_committed(const storage::Manifest& manifest) {
  std::int64_t elements = 0;
  for (const auto& [begin, end] : committed_elements(manifest))
    elements += static_cast<std::int64_t>(end - begin);
  return elements;
}

CutVerdict judge_cut(const Scenario& scenario, const storage::Manifest& manifest,
                     const Values& values, const Layout& layout, const std::set<int>& may_lack) {
  CutJudge judge(scenario, manifest, layout, may_lack);
  const std::int64_t elements = elements_committed(manifest);
  const bool in_rounds = scenario.consistency.in_rounds();
  // Assignments to late variables are steps, too; the program of a coordinator that had no journal
  // makes them anew.
  const auto again = std::ranges::count(scenario.faults, Fault::Kind::kKillChief, &Fault::kind);
  const std::int64_t late = scenario.late_variables * (scenario.saves.journal ? 1 : 1 + again),
                     step = manifest.global_step;
  if (!scenario.loses_power() &&
      (in_rounds ? elements < step - late : elements > step || elements < step - late))
    judge.complain(str(elements, " elements of the data are committed at step ", step));
  judge.judge(values);
  return judge.take();
}

}  // namespace cairn::simulation
