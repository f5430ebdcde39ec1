#include "next.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace lapwing::pmpi {

namespace {

// Python loads MPI as the program goes, out of sight of RTLD_NEXT: look into every loaded libmpi*.
int look_into(dl_phdr_info *module, std::size_t, void *argument) {
    void **found = static_cast<void **>(argument);
    const char *slash = std::strrchr(module->dlpi_name, '/');
    const char *file = slash != nullptr ? slash + 1 : module->dlpi_name;
    if (std::strncmp(file, "libmpi", 6) != 0 && std::strncmp(file, "libpmpi", 7) != 0) return 0;
    void *library = dlopen(module->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return 0;
    found[1] = dlsym(library, static_cast<const char *>(found[0]));
    dlclose(library);
    return found[1] != nullptr;
}

} // namespace

void *find_next_function(const char *name) {
    if (void *found = dlsym(RTLD_NEXT, name)) return found;
    void *wanted[2] = {const_cast<char *>(name), nullptr};
    dl_iterate_phdr(look_into, wanted);
    return wanted[1];
}

void *next_function(const char *name) {
    void *found = find_next_function(name);
    if (found == nullptr) {
        std::fprintf(stderr, "lapwing trace: the program calls %s, which its MPI library does not have\n", name);
        _exit(1);
    }
    return found;
}

} // namespace lapwing::pmpi
