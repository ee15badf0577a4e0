// Python objects that a C++ object calls or needs, and cycles through them.
//
// An object that keeps a callable may be reached from it again: a layer's activation is a closure
// that refers to the layer. So classes of such objects take part in the collection of cycles. Each
// reference is visited by the one object that made it, and by no copy of what holds it too.
#pragma once
#include <utility>
#include <vector>

#include "interpreter.h"

namespace cairn::python {

class Kept {
 public:
  Kept() = default;
  // The C++ object that holds the references too is destroyed first, so that nothing waits in the
  // queue once the interpreter ends. With the GIL, as everything here.
  ~Kept() {
    if (all_.empty()) return;
    all_.clear();
    drop_references();
  }
  Kept(Kept&&) = default;
  Kept& operator=(Kept&&) = default;
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  // A reference for what C++ keeps, which this object answers for.
  SharedReference keep(nb::handle object) {
    all_.push_back(share(nb::borrow(object)));
    return all_.back();
  }
  template <typename F>
  void each(F&& f) const {
    for (const SharedReference& each : all_) f(each->get());
  }
  int traverse(visitproc visit, void* argument) const {
    for (const SharedReference& each : all_)
      if (const int stopped = visit(each->get().ptr(), argument)) return stopped;
    return 0;
  }
  void clear() { all_.clear(); }

 private:
  std::vector<SharedReference> all_;
};

// The slots of a class whose T has traverse() and clear().
template <typename T>
int traverse_object(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<T>(self)->traverse(visit, arg) : 0;
}
template <typename T>
int clear_object(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<T>(self)->clear();
  return 0;
}
template <typename T>
PyType_Slot* collected() {
  static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_object<T>)},
                                {Py_tp_clear, reinterpret_cast<void*>(clear_object<T>)},
                                {0, nullptr}};
  return slots;
}

}  // namespace cairn::python
