c     Nine points on a plane; the halo exchange packs nothing, columns are contiguous.
      program nine
      implicit none
      include 'mpif.h'
      integer nx, ny
      parameter (nx = 50, ny = 30)
      double precision u(0:nx+1, 0:ny+1), v(0:nx+1, 0:ny+1), s
      common /plane/ u, v
      integer rank, size, left, right, step, i, j, ierr
      integer status(MPI_STATUS_SIZE)

      call mpi_init(ierr)
      call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
      call mpi_comm_size(MPI_COMM_WORLD, size, ierr)
      left = rank - 1
      if (left .lt. 0) left = MPI_PROC_NULL
      right = rank + 1
      if (right .ge. size) right = MPI_PROC_NULL
      do 10 j = 0, ny + 1
      do 10 i = 0, nx + 1
         u(i, j) = mod(i * 7 + j * 11 + rank, 37)
         v(i, j) = 0.0d0
   10 continue
      do 90 step = 1, 4
c        overlap: nonblocking
         call mpi_sendrecv(u(0, ny), nx + 2, MPI_DOUBLE_PRECISION,
     &      right, 1, u(0, 0), nx + 2, MPI_DOUBLE_PRECISION, left, 1,
     &      MPI_COMM_WORLD, status, ierr)
         call mpi_sendrecv(u(0, 1), nx + 2, MPI_DOUBLE_PRECISION,
     &      left, 2, u(0, ny + 1), nx + 2, MPI_DOUBLE_PRECISION, right,
     &      2, MPI_COMM_WORLD, status, ierr)
         do 20 j = 1, ny
            do 20 i = 1, nx
               v(i, j) = 0.5d0 * u(i, j) + 0.0625d0 * (u(i-1, j)
     &            + u(i+1, j) + u(i, j-1) + u(i, j+1) + u(i-1, j-1)
     &            + u(i+1, j+1) + u(i-1, j+1) + u(i+1, j-1))
   20    continue
         do 30 j = 1, ny
            do 30 i = 1, nx
               u(i, j) = v(i, j)
   30    continue
   90 continue
      s = 0.0d0
      do 95 j = 0, ny + 1
      do 95 i = 0, nx + 1
         s = s + u(i, j) * (i + 2 * j)
   95 continue
      write (*, '(i4,z17.16)') rank, s
      call mpi_finalize(ierr)
      end
