// Nests: what Python passes to a function and gets from it, dicts, lists and tuples of leaves, as a
// flat list of leaves and a shape to put them back into.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "interpreter.h"

namespace cairn::python {

class Nest {
 public:
  enum class Kind : std::uint8_t { kLeaf, kNone, kList, kTuple, kNamedTuple, kDict, kStatic };

  // Takes an object apart: its leaves are appended to `leaves`. Texts and None are no leaves but
  // part of the shape, so that another text is another shape; `texts_are_leaves` says otherwise.
  //   Errors  TypeError: a key that is no text, a set, a generator or a coroutine; or it is so deep
  //           that it may contain itself.
  static Nest of(nb::handle object, std::vector<nb::object>& leaves, bool texts_are_leaves = false);

  // Equal keys are equal shapes.
  const std::string& key() const { return key_; }
  // The way to each leaf, as C++ names outputs: "b/1/0"; of a bare leaf "".
  std::vector<std::string> paths() const;
  // The same shape around other leaves.
  nb::object around(const std::vector<nb::object>& leaves) const;
  // The objects that the shape itself holds are visited, for the collector of cycles.
  int traverse(visitproc visit, void* argument) const;

 private:
  struct Part {
    Kind kind = Kind::kLeaf;
    std::vector<std::string> keys;  // of a dict, in its order
    nb::object held;                // a named tuple's type, or what is static
    std::vector<Part> parts;
  };
  static Part taken_apart(nb::handle object, std::vector<nb::object>& leaves, bool texts_are_leaves,
                          int depth = 0);
  static void append_key(const Part& part, std::string& key);
  static void append_paths(const Part& part, const std::string& path,
                           std::vector<std::string>& all);
  static nb::object put_together(const Part& part, const std::vector<nb::object>& leaves,
                                 std::size_t& next);
  static int traverse(const Part& part, visitproc visit, void* argument);

  Part root_;
  std::string key_;
};

}  // namespace cairn::python
