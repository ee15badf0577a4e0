#include "tests/simulation/life.h"

#include <map>
#include <numeric>

#include "core/base/error.h"
#include "tests/simulation/cut.h"

namespace cairn::simulation {
namespace {

class LifeJudge {
 public:
  LifeJudge(const Scenario& scenario, const Base& base, const Layout& layout,
            const std::vector<std::uint64_t>& lost)
      : scenario_(scenario), base_(base), layout_(layout), lost_(lost) {}

  void judge_number(const char* name, const Part& part, std::int64_t before, std::int64_t added,
                    std::int64_t value) {
    const int ps = ps_of(part.shard, layout_);
    const std::int64_t lacks = before + added - value;
    if (!as_lost(lacks, ps))
      complain(str(name, " on ps ", ps, " is ", value, ", not ", before + added - lost_on(ps), " (",
                   before, " restored, ", added, " closures since, ", lost_on(ps),
                   " reported lost)"));
  }

  void judge_numbers(const Values& now, std::int64_t added) {
    judge_number("v", layout_.find("v")->parts.front(), base_.values.v, added, now.v);
    judge_number("w", layout_.find("w")->parts.front(), base_.values.w, added, now.w);
    if (scenario_.wide == 0) return;
    for (const Part& part : layout_.find("wide")->parts)
      for (auto i = static_cast<std::size_t>(part.rows.begin);
           i < static_cast<std::size_t>(part.rows.end); ++i)
        judge_number("wide", part, base_.values.wide.at(i), added, now.wide.at(i));
  }

  // Where elements are given out again, only how many closures have added to the table can be told.
  void judge_sums(const char* table, const RowCounts& before, const RowCounts& now,
                  std::int64_t added) {
    std::int64_t missing = 0, lost = 0;
    for (const std::uint64_t on_ps : lost_) lost += static_cast<std::int64_t>(on_ps);
    for (const Part& part : layout_.find(table)->parts) {
      const std::int64_t was = total(before, part.rows), is = total(now, part.rows);
      if (scenario_.spread == Spread::kEveryShard) judge_number(table, part, was, added, is);
      missing += was - is;
    }
    if (scenario_.spread == Spread::kOneRow && (missing + added < 0 || missing + added > lost))
      complain(str("the rows of ", table, " lack ", missing + added, " updates, ", lost,
                   " are reported lost"));
  }

  void judge_table(const char* table, const RowCounts& whole, const RowCounts& committed,
                   const RowCounts& before, const RowCounts& now) {
    std::map<int, std::int64_t> lacks;
    for (const Part& part : layout_.find(table)->parts) {
      const int ps = ps_of(part.shard, layout_);
      std::int64_t missing = 0;
      for (std::size_t i = 0; i < whole.size(); ++i) {
        const std::int64_t row = whole[i].first;
        if (row < part.rows.begin || row >= part.rows.end) continue;
        const std::int64_t asked = whole[i].second - committed.at(i).second,
                           added = now.at(i).second - before.at(i).second;
        if (added > asked || asked - added > lost_on(ps))
          complain(str("row ", row, " of ", table, " on ps ", ps, " was added to ", added,
                       " times, not ", asked, "; ", lost_on(ps), " are reported lost there"));
        missing += asked - added;
      }
      lacks[ps] += missing;
      if (scenario_.spread == Spread::kEveryShard && !as_lost(missing, ps))
        complain(str("the rows of ", table, " on shard ", part.shard, " of ps ", ps, " lack ",
                     missing, " updates, ", lost_on(ps), " are reported lost there"));
    }
    // a closure of flights has hundreds of rows
    if (scenario_.spread == Spread::kEveryShard || scenario_.job == Job::kFlights) return;
    for (const auto& [ps, missing] : lacks)
      if (missing > lost_on(ps))
        complain(str("the rows of ", table, " on ps ", ps, " lack ", missing, " updates, ",
                     lost_on(ps), " are reported lost there"));
  }

  std::vector<std::string> take() { return std::move(complaints_); }

 private:
  // Where all copies of a shard may be lost, a ps answers for shards of which others were lost, and
  // its own are elsewhere: what is reported of all of them is a bound for each.
  std::int64_t lost_on(int ps) const {
    const std::uint64_t lost = scenario_.copies.some_lost()
                                   ? std::accumulate(lost_.begin(), lost_.end(), std::uint64_t{0})
                                   : lost_.at(static_cast<std::size_t>(ps));
    return static_cast<std::int64_t>(lost);
  }
  bool as_lost(std::int64_t lacks, int ps) const {
    return scenario_.copies.some_lost() ? lacks >= 0 && lacks <= lost_on(ps) : lacks == lost_on(ps);
  }
  void complain(std::string what) { complaints_.push_back(std::move(what)); }

  const Scenario& scenario_;
  const Base& base_;
  const Layout& layout_;
  const std::vector<std::uint64_t>& lost_;
  std::vector<std::string> complaints_;
};

}  // namespace

Base fresh_base(const Scenario& scenario) { return {zero_values(scenario), due(scenario, {}), 0}; }

std::vector<std::uint64_t> losses_by_ps(const EngineStats& stats, int ps) {
  std::vector<std::uint64_t> lost(static_cast<std::size_t>(ps), 0);
  for (const LossReport& loss : stats.losses)
    for (int i = 0; i < ps; ++i)
      if (loss.task == str("/job:ps/task:", i))
        lost[static_cast<std::size_t>(i)] += loss.lost_updates;
  return lost;
}

std::vector<std::string> judge_life(const Scenario& scenario, const Base& base, const Due& due,
                                    std::int64_t until, const Values& now, const Layout& layout,
                                    const std::vector<std::uint64_t>& lost) {
  LifeJudge judge(scenario, base, layout, lost);
  judge.judge_numbers(now, until - base.step);
  if (scenario.loses_power()) {
    judge.judge_sums("rows", base.values.rows, now.rows, until - base.step);
    judge.judge_sums("hashed", base.values.hashed, now.hashed, until - base.step);
    return judge.take();
  }
  judge.judge_table("rows", due.rows, base.due.rows, base.values.rows, now.rows);
  judge.judge_table("hashed", due.hashed, base.due.hashed, base.values.hashed, now.hashed);
  return judge.take();
}

}  // namespace cairn::simulation
