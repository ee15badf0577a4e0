// TomlTable: a TOML table that is read key by key and complains about what nobody asked for.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/element.h"
#include "core/error.h"

// toml++ 3.3 asserts what a file may well hold ("[`a]"): that is an error of the file here, in every kind of build.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(condition) ((condition) ? void() : throw ::cairn::InvalidArgumentError("this is no TOML (" #condition ")"))
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace cairn::tools {

class TomlTable {
 public:
  TomlTable(const toml::table* table, std::string name, std::string file) : table_(table), name_(std::move(name)), file_(std::move(file)) {}

  bool has(const std::string& key) const { return table_ != nullptr && table_->contains(key); }
  const toml::node* node(const std::string& key) {
    known_.insert(key);
    return table_ == nullptr ? nullptr : table_->get(key);
  }
  TomlTable table(const std::string& key) {
    const toml::node* found = node(key);
    if (found != nullptr && !found->is_table()) fail(*found, key, "a table");
    return TomlTable(found == nullptr ? nullptr : found->as_table(), path(key), file_);
  }
  template <typename T>
  void read(const std::string& key, T& value) {
    if (const toml::node* found = node(key)) value = convert<T>(*found, key);
  }
  // A table of named values: every key is data, none is unknown.
  template <typename F>
  void each(F visit) {
    if (table_ == nullptr) return;
    for (auto&& [key, value] : *table_) {
      known_.insert(std::string(key.str()));
      visit(std::string(key.str()), value);
    }
  }
  template <typename T>
  T convert(const toml::node& found, const std::string& key) const;

  // InvalidArgument naming the first key that was never read.
  void refuse_unknown() const {
    if (table_ == nullptr) return;
    std::vector<std::string> known(known_.begin(), known_.end());
    for (auto&& [key, value] : *table_) {
      std::string text(key.str());
      if (known_.contains(text)) continue;
      std::string near = nearest_name(text, known);
      throw InvalidArgumentError(str(place(value), ": unknown key \"", path(text), "\"", near.empty() ? "" : "; did you mean \"" + near + "\"?"));
    }
  }
  // InvalidArgument naming the known values, and the nearest.
  void one_of(const std::string& key, const std::string& value, const std::vector<std::string>& known) const {
    std::string list;
    for (const std::string& one : known) {
      if (one == value) return;
      list += (list.empty() ? "" : ", ") + one;
    }
    const toml::node* found = table_ == nullptr ? nullptr : table_->get(key);
    const std::string near = nearest_name(value, known);
    throw InvalidArgumentError(str(found == nullptr ? file_ : place(*found), ": ", path(key), " is \"", value, "\", one of ", list, " is wanted",
                                   near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  // An error's text with the place of this table before it, unless it names one.
  std::string located(const std::string& text) const {
    if (text.starts_with(file_)) return text;
    return str(table_ == nullptr ? file_ : str(file_, ":", table_->source().begin.line), ": ", name_, ": ", text);
  }
  std::string place(const toml::node& found) const { return str(file_, ":", found.source().begin.line); }
  std::string path(const std::string& key) const { return name_.empty() ? key : name_ + "." + key; }
  [[noreturn]] void fail(const toml::node& found, const std::string& key, const std::string& wanted) const {
    throw InvalidArgumentError(str(place(found), ": ", path(key), " must be ", wanted));
  }
  const std::string& file() const { return file_; }

 private:
  const toml::table* table_;
  std::string name_, file_;
  std::set<std::string> known_;
};

namespace detail {
template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
}  // namespace detail

template <typename T>
T TomlTable::convert(const toml::node& found, const std::string& key) const {
  if constexpr (detail::IsVector<T>::value) {
    T all;
    if (const toml::array* array = found.as_array()) {
      for (const toml::node& item : *array) all.push_back(convert<typename T::value_type>(item, key));
    } else {
      all.push_back(convert<typename T::value_type>(found, key));  // one value serves as a list of one
    }
    return all;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (auto value = found.value_exact<bool>()) return *value;
    fail(found, key, "true or false");
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (auto value = found.value_exact<std::string>()) return *value;
    fail(found, key, "a text in quotes");
  } else if constexpr (std::is_floating_point_v<T>) {
    if (auto value = found.value<double>()) return static_cast<T>(*value);
    fail(found, key, "a number");
  } else {
    auto value = found.value_exact<std::int64_t>();
    if (!value) fail(found, key, "a whole number");
    if (*value < 0 || static_cast<std::uint64_t>(*value) > static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
      fail(found, key, "a whole number that is not negative and not that large");
    return static_cast<T>(*value);
  }
}

}  // namespace cairn::tools
