// diff: two checkpoints row by row, as two sorted streams of which a few megabytes are in memory.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <set>

#include "tools/ckpt/commands.h"
#include "tools/ckpt/opened_checkpoint.h"
#include "tools/job/train/checkpoint_path.h"

namespace cairn::tools::ckpt {
namespace {

using storage::RowBatch;
using storage::RowFields;

struct Greatest {
  double difference = 0;
  std::int64_t row = -1;  // the first one that has it; -1: none differs
};

struct RowsDiff {
  std::uint64_t equal = 0, differ = 0, only_a = 0, only_b = 0;
  std::vector<Greatest> fields;  // as RowFields has them
  bool same() const { return differ == 0 && only_a == 0 && only_b == 0; }
};

// A cursor over the rows of one side.
class Side {
 public:
  Side(const OpenedCheckpoint& checkpoint, const storage::VariableInfo& variable,
       Progress& progress)
      : rows_(checkpoint.path(), checkpoint.rows(variable)), progress_(progress) {
    refill();
  }
  bool ended() const { return ended_; }
  std::int64_t row() const { return batch_.rows[at_]; }
  const std::byte* data() const { return batch_.data.data() + at_ * rows_.form().bytes(); }
  std::size_t left() const { return batch_.rows.size() - at_; }
  const std::int64_t* numbers() const { return batch_.rows.data() + at_; }
  void skip(std::size_t rows) {
    at_ += rows;
    if (at_ == batch_.rows.size()) refill();
  }

 private:
  void refill() {
    at_ = 0;
    ended_ = !rows_.next(batch_);
    progress_.add(batch_.data.size());
  }
  RowsAhead rows_;
  Progress& progress_;
  RowBatch batch_;
  std::size_t at_ = 0;
  bool ended_ = false;
};

// A NaN on one side alone is an infinite difference.
double distance(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) && std::isnan(b) ? 0 : std::numeric_limits<double>::infinity();
  return a == b ? 0 : std::fabs(a - b);
}

void compare_row(const RowFields& form, std::int64_t row, const std::byte* a, const std::byte* b,
                 RowsDiff& diff) {
  ++diff.differ;
  const std::size_t width = dtype_bytes(form.dtype);
  for (std::size_t i = 0; i < form.fields.size(); ++i) {
    const RowFields::Field& field = form.fields[i];
    for (std::int64_t j = field.begin; j < field.begin + field.width; ++j) {
      const std::size_t at = static_cast<std::size_t>(j) * width;
      if (std::memcmp(a + at, b + at, width) == 0) continue;
      const double found =
          distance(element_value(form.dtype, a + at), element_value(form.dtype, b + at));
      Greatest& greatest = diff.fields[i];
      if (greatest.row < 0 || found > greatest.difference) greatest = {found, row};
    }
  }
}

// How many of the next rows have equal numbers on both sides.
std::size_t common_run(const Side& a, const Side& b) {
  const std::size_t most = std::min(a.left(), b.left());
  if (std::memcmp(a.numbers(), b.numbers(), most * sizeof(std::int64_t)) == 0) return most;
  std::size_t run = 0;
  while (run < most && a.numbers()[run] == b.numbers()[run]) ++run;
  return run;
}

RowsDiff diff_rows(Side& a, Side& b, const RowFields& form) {
  RowsDiff diff;
  diff.fields.resize(form.fields.size());
  const std::size_t bytes = form.bytes();
  while (!a.ended() && !b.ended()) {
    const std::size_t run = common_run(a, b);
    if (run == 0) {
      const bool in_a = a.row() < b.row();
      ++(in_a ? diff.only_a : diff.only_b);
      (in_a ? a : b).skip(1);
      continue;
    }
    if (std::memcmp(a.data(), b.data(), run * bytes) == 0) {
      diff.equal += run;
    } else {
      for (std::size_t i = 0; i < run; ++i) {
        if (std::memcmp(a.data() + i * bytes, b.data() + i * bytes, bytes) == 0)
          ++diff.equal;
        else
          compare_row(form, a.numbers()[i], a.data() + i * bytes, b.data() + i * bytes, diff);
      }
    }
    a.skip(run);
    b.skip(run);
  }
  for (; !a.ended(); a.skip(a.left())) diff.only_a += a.left();
  for (; !b.ended(); b.skip(b.left())) diff.only_b += b.left();
  return diff;
}

const storage::VariableInfo* find(const OpenedCheckpoint& checkpoint, const std::string& name) {
  for (const auto& variable : checkpoint.manifest().variables)
    if (variable.name == name) return &variable;
  return nullptr;
}

std::string type_text(const storage::VariableInfo& variable) {
  std::string text = TensorType{variable.dtype, variable.shape}.to_string();
  if (variable.hashed) text += " hashed";
  text += str(" ", rule_name(variable.rule));
  for (const std::string& slot : variable.slots) text += " " + slot;
  return text;
}

Json to_json(const std::string& name, const RowFields& form, const RowsDiff& diff) {
  Json greatest = Json::object();
  for (std::size_t i = 0; i < form.fields.size(); ++i) {
    const Greatest& one = diff.fields[i];
    if (one.row >= 0)
      greatest[i == 0 ? "parameters" : form.fields[i].name] = {
          {"difference", json_number(one.difference)}, {"row", one.row}};
  }
  return {{"name", name},          {"equal", diff.equal},   {"differ", diff.differ},
          {"only_a", diff.only_a}, {"only_b", diff.only_b}, {"greatest", greatest}};
}

void print(const std::string& name, const RowFields& form, const RowsDiff& diff) {
  if (diff.same()) return;
  std::printf(
      "%s: %llu rows differ, %llu equal, %llu only in A, %llu only in B\n", name.c_str(),
      static_cast<unsigned long long>(diff.differ), static_cast<unsigned long long>(diff.equal),
      static_cast<unsigned long long>(diff.only_a), static_cast<unsigned long long>(diff.only_b));
  for (std::size_t i = 0; i < form.fields.size(); ++i)
    if (diff.fields[i].row >= 0)
      std::printf("  %-14s greatest difference %g, row %lld\n",
                  i == 0 ? "parameters" : form.fields[i].name.c_str(), diff.fields[i].difference,
                  static_cast<long long>(diff.fields[i].row));
}

// The findings so far, as JSON or printed at once.
struct Findings {
  Form form;
  bool same = true;
  Json variables = Json::array(), only_a = Json::array(), only_b = Json::array(),
       other_type = Json::array();

  void only(const char* side, const std::string& name, Json& list) {
    same = false;
    list.push_back(name);
    if (form == Form::kText) std::printf("only in %s: %s\n", side, name.c_str());
  }
  void types(const storage::VariableInfo& a, const storage::VariableInfo& b) {
    same = false;
    other_type.push_back({{"name", a.name}, {"a", type_text(a)}, {"b", type_text(b)}});
    if (form == Form::kText)
      std::printf("%s: %s in A, %s in B: rows are not compared\n", a.name.c_str(),
                  type_text(a).c_str(), type_text(b).c_str());
  }
  void rows(const std::string& name, const RowFields& row, const RowsDiff& diff) {
    same = same && diff.same();
    if (form == Form::kText)
      print(name, row, diff);
    else
      variables.push_back(to_json(name, row, diff));
  }
};

}  // namespace

int diff(const DiffRequest& request) {
  const storage::DatabaseFolders folders(request.folders);
  const OpenedCheckpoint a(checkpoint_at(request.a), folders), b(checkpoint_at(request.b), folders);
  if (request.form == Form::kText)
    std::printf("A: %s, step %lld\nB: %s, step %lld\n", a.path().c_str(),
                static_cast<long long>(a.manifest().global_step), b.path().c_str(),
                static_cast<long long>(b.manifest().global_step));
  Progress progress("comparing", a.bytes() + b.bytes());
  Findings found{request.form};
  for (const auto& variable : a.manifest().variables) {
    const storage::VariableInfo* other = find(b, variable.name);
    if (other == nullptr) {
      found.only("A", variable.name, found.only_a);
    } else if (storage::row_fields(variable) != storage::row_fields(*other) ||
               variable.shape != other->shape || variable.hashed != other->hashed) {
      found.types(variable, *other);
    } else {
      Side left(a, variable, progress), right(b, *other, progress);
      const RowFields form = storage::row_fields(variable);
      found.rows(variable.name, form, diff_rows(left, right, form));
    }
  }
  for (const auto& variable : b.manifest().variables)
    if (find(a, variable.name) == nullptr) found.only("B", variable.name, found.only_b);
  if (request.form == Form::kJson)
    print_json({{"a", a.path()},
                {"b", b.path()},
                {"same", found.same},
                {"only_a", found.only_a},
                {"only_b", found.only_b},
                {"other_type", found.other_type},
                {"variables", found.variables}});
  else if (found.same)
    std::printf("all rows are equal\n");
  return found.same ? kFine : kFound;
}

}  // namespace cairn::tools::ckpt
