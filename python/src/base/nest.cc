#include "nest.h"

#include "core/base/error.h"
#include "refusing.h"

namespace cairn::python {
namespace {

std::string name_of_type(nb::handle object) {
  return nb::cast<std::string>(nb::handle(object.type()).attr("__name__"));
}

// A nest of more levels than this holds itself.
constexpr int kDepthMax = 100;

std::string below(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "/" + name;
}

}  // namespace

Nest Nest::of(nb::handle object, std::vector<nb::object>& leaves, bool texts_are_leaves) {
  Nest made;
  made.root_ = taken_apart(object, leaves, texts_are_leaves);
  append_key(made.root_, made.key_);
  return made;
}

Nest::Part Nest::taken_apart(nb::handle object, std::vector<nb::object>& leaves,
                             bool texts_are_leaves, int depth) {
  Part part;
  if (depth > kDepthMax)
    type_error(str("a nest of more than ", kDepthMax, " levels: it seems to contain itself"));
  if (object.is_none()) {
    part.kind = Kind::kNone;
  } else if (nb::isinstance<nb::dict>(object)) {
    part.kind = Kind::kDict;
    for (auto [key, value] : nb::borrow<nb::dict>(object)) {
      if (!nb::isinstance<nb::str>(key))
        type_error(str("a dict of arrays is keyed by texts, not by ", described(key)));
      part.keys.push_back(nb::cast<std::string>(key));
      part.parts.push_back(taken_apart(value, leaves, texts_are_leaves, depth + 1));
    }
  } else if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    part.kind = nb::isinstance<nb::list>(object) ? Kind::kList : Kind::kTuple;
    if (part.kind == Kind::kTuple && nb::hasattr(object, "_fields")) {
      part.kind = Kind::kNamedTuple;
      part.held = nb::borrow(object.type());
    }
    for (nb::handle each : object)
      part.parts.push_back(taken_apart(each, leaves, texts_are_leaves, depth + 1));
  } else if (!texts_are_leaves &&
             (nb::isinstance<nb::str>(object) || nb::isinstance<nb::bytes>(object))) {
    part.kind = Kind::kStatic;
    part.held = nb::borrow(object);
  } else {
    const std::string kind = name_of_type(object);
    if (kind == "generator" || kind == "coroutine" || kind == "async_generator" || kind == "set" ||
        kind == "frozenset")
      type_error(str(described(object),
                     " cannot be passed to or returned from a function that is "
                     "recorded: use a list, a tuple or a dict of arrays"));
    leaves.push_back(nb::borrow(object));
  }
  return part;
}

void Nest::append_key(const Part& part, std::string& key) {
  switch (part.kind) {
    case Kind::kLeaf: key += '*'; return;
    case Kind::kNone: key += '0'; return;
    case Kind::kStatic: {
      const auto text = nb::cast<std::string>(nb::repr(part.held));
      key += str('s', text.size(), ':', text);
      return;
    }
    case Kind::kNamedTuple:
      key += str('n', reinterpret_cast<std::uintptr_t>(part.held.ptr()));
      break;
    case Kind::kList: key += 'l'; break;
    case Kind::kTuple: key += 't'; break;
    case Kind::kDict: key += 'd'; break;
  }
  key += '(';
  for (std::size_t i = 0; i < part.parts.size(); ++i) {
    if (part.kind == Kind::kDict) key += str(part.keys[i].size(), ':', part.keys[i]);
    append_key(part.parts[i], key);
  }
  key += ')';
}

std::vector<std::string> Nest::paths() const {
  std::vector<std::string> all;
  append_paths(root_, "", all);
  return all;
}

void Nest::append_paths(const Part& part, const std::string& path, std::vector<std::string>& all) {
  if (part.kind == Kind::kLeaf) all.push_back(path);
  for (std::size_t i = 0; i < part.parts.size(); ++i)
    append_paths(part.parts[i], below(path, part.kind == Kind::kDict ? part.keys[i] : str(i)), all);
}

nb::object Nest::around(const std::vector<nb::object>& leaves) const {
  std::size_t next = 0;
  return put_together(root_, leaves, next);
}

nb::object Nest::put_together(const Part& part, const std::vector<nb::object>& leaves,
                              std::size_t& next) {
  switch (part.kind) {
    case Kind::kLeaf: return leaves.at(next++);
    case Kind::kNone: return nb::none();
    case Kind::kStatic: return part.held;
    case Kind::kDict: {
      nb::dict made;
      for (std::size_t i = 0; i < part.parts.size(); ++i)
        made[nb::str(part.keys[i].c_str(), part.keys[i].size())] =
            put_together(part.parts[i], leaves, next);
      return made;
    }
    default: break;
  }
  nb::list made;
  for (const Part& each : part.parts) made.append(put_together(each, leaves, next));
  if (part.kind == Kind::kList) return made;
  if (part.kind == Kind::kNamedTuple) return part.held(*nb::tuple(made));
  return nb::tuple(made);
}

int Nest::traverse(visitproc visit, void* argument) const {
  return traverse(root_, visit, argument);
}

int Nest::traverse(const Part& part, visitproc visit, void* argument) {
  if (part.held.is_valid())
    if (const int stopped = visit(part.held.ptr(), argument)) return stopped;
  for (const Part& each : part.parts)
    if (const int stopped = traverse(each, visit, argument)) return stopped;
  return 0;
}

}  // namespace cairn::python
