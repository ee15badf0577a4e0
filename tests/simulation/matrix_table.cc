#include "tests/simulation/matrix_table.h"

#include <chrono>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <sstream>

#include "core/base/error.h"
#include "tests/simulation/run.h"

namespace cairn::simulation {
namespace {

constexpr const char* kBegin = "<!-- matrix: begin -->\n";
constexpr const char* kEnd = "<!-- matrix: end -->\n";

const char* text_of(Promise promise) {
  return promise == Promise::kNoUpdate ? "no update" : "counted";
}

void tell(const CellVerdict& verdict) {
  std::cout << std::left << std::setw(48) << verdict.cell.name() << std::right << std::setw(6)
            << verdict.seeds << " seeds " << std::setw(6) << verdict.met << " met " << std::setw(4)
            << verdict.bad << " bad";
  if (verdict.bad > 0)
    std::cout << ", the first: " << verdict.first_bad << "\n  FAILED: " << verdict.complaint;
  std::cout << std::endl;
}

std::vector<Cell> cells_of(const MatrixRun& run) {
  const std::vector<Cell> all = run.cells.empty() ? matrix_cells() : cells_named(run.cells);
  if (all.empty()) throw InvalidArgumentError(str("no cell of the matrix is named ", run.cells));
  std::vector<Cell> cells;
  for (std::size_t i = run.part - 1; i < all.size(); i += run.parts) cells.push_back(all[i]);
  return cells;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw NotFoundError(str("cannot read ", path));
  return text.str();
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path);
  out << text << std::flush;
  if (!out) throw UnavailableError(str("cannot write ", path));
}

}  // namespace

CellVerdict judge_cell(const Cell& cell, std::uint64_t first, std::uint64_t seeds) {
  CellVerdict verdict{.cell = cell, .seeds = seeds};
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const Verdict one = run(cell_scenario(cell, seed));
    verdict.met += one.unmet == 0 ? 1 : 0;
    if (one.good()) continue;
    if (verdict.bad++ > 0) continue;
    verdict.first_bad = seed;
    verdict.complaint = one.complaints.front();
  }
  return verdict;
}

std::string markdown_of(const std::vector<CellVerdict>& verdicts) {
  std::vector<std::string> rows;  // in the order of the cells
  std::map<std::string, std::map<std::string, const CellVerdict*>> by_row;
  for (const CellVerdict& verdict : verdicts) {
    const std::string row = verdict.cell.row();
    if (!by_row.contains(row)) rows.push_back(row);
    by_row[row][verdict.cell.name().substr(row.size() + 1)] = &verdict;
  }
  std::ostringstream out;
  out << "| cell | promise |";
  for (const std::string& kind : matrix_kinds()) out << " " << kind << " |";
  out << " finds |\n| --- | --- |";
  for (std::size_t i = 0; i < matrix_kinds().size(); ++i) out << " --- |";
  out << " --- |\n";
  for (const std::string& row : rows) {
    const auto& cells = by_row[row];
    out << "| `" << row << "` | " << text_of(cells.begin()->second->cell.promise()) << " |";
    for (const std::string& kind : matrix_kinds()) {
      const auto found = cells.find(kind);
      out << " ";
      if (found != cells.end()) out << found->second->met << " / " << found->second->bad << " ";
      out << "|";
    }
    const std::string bug = planted_bug(row);
    out << (bug.empty() ? " |\n" : str(" ", bug, " |\n"));
  }
  return out.str();
}

std::string with_table(const std::string& page, const std::string& table) {
  const std::size_t begin = page.find(kBegin), end = page.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    throw FailedPreconditionError(
        str("the page has no lines ", kBegin, "and ", kEnd, "between which the table goes"));
  return page.substr(0, begin) + kBegin + "\n" + table + "\n" + page.substr(end);
}

bool run_matrix(const MatrixRun& run) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Cell> cells = cells_of(run);
  std::vector<CellVerdict> verdicts;
  std::uint64_t bad = 0, met = 0;
  for (const Cell& cell : cells) {
    verdicts.push_back(judge_cell(cell, run.first, run.seeds));
    tell(verdicts.back());
    bad += verdicts.back().bad;
    met += verdicts.back().met;
  }
  std::cout << cells.size() << " cells: " << cells.size() * run.seeds << " seeds, " << met
            << " met their phase, " << bad << " are bad; "
            << std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()
            << " s" << std::endl;
  if (!run.page.empty())
    write_file(run.page, with_table(read_file(run.page), markdown_of(verdicts)));
  return bad == 0;
}

}  // namespace cairn::simulation
