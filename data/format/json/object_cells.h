// ObjectParser: the values of a JSON object become the cells of columns, which are found by their
// names.
//
// Boost.JSON's parser of events allocates nothing and gives the text of numbers, so that an id of
// 19 digits is never a double on its way. Cells are views of the object's text where they have no
// escapes.
#pragma once
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset/schema.h"
#include "data/file/record_reader.h"

namespace cairn {

// Stands between the values of a list, in a cell of several (CsvColumn::separator); no text of a
// list may hold it.
inline constexpr char kListSeparator = '\x1f';

// Thread: one at a time.
class ObjectParser {
 public:
  // `wanted`: places in schema.columns, which must outlive the parser. `record`: what holds one
  // object, for messages.
  ObjectParser(const CsvSchema& schema, const std::vector<std::size_t>& wanted, const char* record);
  ~ObjectParser();
  ObjectParser(const ObjectParser&) = delete;
  ObjectParser& operator=(const ObjectParser&) = delete;

  // Parses the object with which `text` begins, and the blanks around it. Texts with escapes go to
  // `texts`. Returns how many bytes that was; empty: fault() says why there is no such object, or
  // why its values cannot be used.
  std::optional<std::size_t> parse(std::string_view text, std::deque<std::string>& texts);
  // The cells of the wanted columns, in their order. A column without a value, or with null, has a
  // cell without data.
  const std::vector<std::string_view>& cells() const;
  const RecordFault& fault() const { return fault_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  const char* record_;
  RecordFault fault_;
};

// The schema of such objects, from one of cells that were cut out of text in another way: what says
// how that is done goes, and lists have kListSeparator, also in default values.
CsvSchema object_schema(const CsvSchema& cells);

}  // namespace cairn
