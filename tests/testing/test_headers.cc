// Owns the precompiled headers of the tests (CMakeLists.txt): it defines nothing.
