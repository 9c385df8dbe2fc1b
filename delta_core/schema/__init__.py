"""Delta's schemas: types, their JSON and Arrow forms, partition values, enforcement, evolution."""
