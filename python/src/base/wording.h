// Messages of C++ in the words of Python.
#pragma once
#include <string>

namespace cairn::python {

// The text with names of C++'s classes and values as Python has them: OnError::kSkipAndCount is
// on_error="skip", CsvColumn::ids is CsvColumn.ids, CacheOptions::bytes_max is bytes_max.
std::string in_python(const std::string& given);

}  // namespace cairn::python
